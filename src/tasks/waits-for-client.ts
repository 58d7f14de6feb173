/** Words of the protocols for a task whose client has to answer before it goes on. */
const WAITS = /(?:input|auth)[-_]required$/i;

/** Whether a task in this state waits for its client, in the words of any protocol. */
export const waitsForClient = (state: string): boolean => WAITS.test(state);
