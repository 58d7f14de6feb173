/** Text from outside, for use in a message: escaped as a JSON string, and cut to 100 characters. */
export const quote = (text: string | null) =>
  JSON.stringify(text === null || text.length <= 100 ? text : `${text.slice(0, 100)}…`);
