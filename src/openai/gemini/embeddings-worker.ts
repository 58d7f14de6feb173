import type { JsonObject } from '#wire';
import { BOUNDS, parseReplyObject } from '#wire/replies';

/** The embeddings of a reply of `/embeddings`, as JSON texts in the order of the inputs. Throws UpstreamFailure. */
export function embeddingsIn(bytes: Uint8Array): readonly string[] {
  const data = parseReplyObject(bytes, BOUNDS.embeddingsForGemini)['data'] as readonly JsonObject[];
  const placed = data.map((one, place) => ({ index: typeof one['index'] === 'number' ? one['index'] : place, one }));
  return placed.toSorted((a, b) => a.index - b.index).map(({ one }) => JSON.stringify({ values: one['embedding'] }));
}

/** Runs in the thread that reads large replies. */
export const run = (bytes: unknown): { readonly value: readonly string[]; readonly transfer: ArrayBuffer[] } => ({
  value: embeddingsIn(new Uint8Array(bytes as ArrayBuffer)),
  transfer: [],
});
