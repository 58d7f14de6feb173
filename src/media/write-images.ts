import { GatewayError, type ReplySink } from '#wire';
import { formatUsd } from '#billing/amounts';
import { type OpenedCall, wasCharged } from '#gateway';
import type { Answer } from './image-answer.ts';
import type { ImageAsk } from './request/image-ask.ts';

/**
 * Writes the images of a call to its client, once they are settled. Resolves with whether anything was charged; false
 * where the client is gone. Throws what the call throws.
 */
export async function writeImages(
  { id, call, frames }: OpenedCall,
  ask: ImageAsk,
  answer: Answer,
  sink: ReplySink,
  onError: (error: unknown) => void,
): Promise<boolean> {
  const iterator = frames[Symbol.asyncIterator]();
  let provider = '';
  try {
    for (;;) {
      const next = await iterator.next();
      if (sink.closed) return false;
      if (next.done) throw new GatewayError('internal', 'Internal error');
      const { value } = next;
      if (value.type === 'head') provider = value.provider.name;
      if (value.type !== 'settled') continue;
      const created = Math.floor(call.startedAt / 1000);
      const { headers, length, pieces } = answer(value, {
        id,
        model: call.service,
        created,
        seed: ask.seed,
        provider,
        inputs: ask.edit?.images ?? null,
      });
      sink.head(200, {
        ...headers,
        'content-length': length,
        'x-generation-id': id,
        'x-provider': provider,
        'x-cost-usd': formatUsd(value.settlement.charged),
        ...(value.receipt === null ? {} : { 'x-receipt': value.receipt }),
      });
      await writePieces(pieces(), sink);
      return wasCharged(value);
    }
  } catch (error) {
    if (!sink.closed) throw error;
    return false;
  } finally {
    // After the end this is without effect. A call that its client left goes on, and is settled.
    iterator.return?.().catch(onError);
  }
}

/** Waits for the client between pieces: a slow one does not make the gateway decode what it does not read yet. */
async function writePieces(pieces: Iterable<Uint8Array>, sink: ReplySink): Promise<void> {
  let last: Uint8Array | null = null;
  for (const piece of pieces) {
    if (last !== null && !sink.write(last)) await sink.drained();
    if (sink.closed) return;
    last = piece;
  }
  sink.end(last!);
}
