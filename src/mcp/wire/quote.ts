/** A stranger's text in a message: escaped and shortened. */
export const quote = (text: string | null) =>
  JSON.stringify(text === null || text.length <= 100 ? text : `${text.slice(0, 100)}…`);
