/**
 * Runs the messages of a batch all at once, as clients expect, each as a call of its own. Gives the responses as one
 * JSON array, in the order of their requests; null for a batch without requests. `run` gives the response to one
 * message, null for a message without one, and never rejects: a failure is the response.
 */
export async function runBatch(
  texts: readonly string[],
  run: (text: string) => Promise<string | null>,
): Promise<string | null> {
  const responses = await Promise.all(texts.map((text) => run(text)));
  const due = responses.filter((response) => response !== null);
  return due.length === 0 ? null : `[${due.join(',')}]`;
}
