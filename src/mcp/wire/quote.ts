/** A stranger's word in a message: escaped, and not all of it. */
export const quote = (text: string | null) =>
  JSON.stringify(text === null || text.length <= 100 ? text : `${text.slice(0, 100)}…`);
