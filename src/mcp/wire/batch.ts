/**
 * Runs the messages of a batch, all at once as clients expect it, each as a call of its own. Gives the responses as
 * one JSON array, in the order of their requests; null where none is due, as for notifications alone. `run` gives
 * the response to one message, null to what has none, and never rejects: what goes wrong with one message is its
 * response.
 */
export async function runBatch(
  texts: readonly string[],
  run: (text: string) => Promise<string | null>,
): Promise<string | null> {
  const responses = await Promise.all(texts.map((text) => run(text)));
  const due = responses.filter((response) => response !== null);
  return due.length === 0 ? null : `[${due.join(',')}]`;
}
