/** The protocols' states of a task that waits for an answer of its client. */
const WAITS = /(?:input|auth)[-_]required$/i;

/** True if a task in this state, of any protocol, waits for its client. */
export const waitsForClient = (state: string): boolean => WAITS.test(state);
