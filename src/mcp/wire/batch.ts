/**
 * Runs the messages of a batch all at once, as clients expect. Each is a call of its own. Resolves to the responses as
 * one JSON array, in the order of their requests; to null for a batch without requests. `run` resolves to the response
 * to one message, or to null if it has none. `run` must not reject: a failure is a response too.
 */
export async function runBatch(
  texts: readonly string[],
  run: (text: string) => Promise<string | null>,
): Promise<string | null> {
  const responses = await Promise.all(texts.map((text) => run(text)));
  const due = responses.filter((response) => response !== null);
  return due.length === 0 ? null : `[${due.join(',')}]`;
}
