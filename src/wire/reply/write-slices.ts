import { setImmediate as nextTurn } from 'node:timers/promises';
import type { ReplySink } from './reply-sink.ts';

/** The system takes so much in a fraction of a millisecond. */
const SLICE_BYTES = 256 * 1024;

/** Large bytes as slices that are each written in a turn of the event loop of their own. */
export function* slicesOf(bytes: Uint8Array): Generator<Uint8Array, void, undefined> {
  for (let at = 0; at < bytes.byteLength; at += SLICE_BYTES) yield bytes.subarray(at, at + SLICE_BYTES);
}

/**
 * Writes large bytes to a client, a slice in each turn of the event loop: of 40 MB the system would take much in one
 * call, which holds up every stream of the process. Waits for a client that reads slower. Ends early where it is gone.
 */
export async function writeSlices(bytes: Uint8Array, sink: ReplySink): Promise<void> {
  let first = true;
  for (const slice of slicesOf(bytes)) {
    if (!first) await nextTurn();
    first = false;
    if (sink.closed) return;
    if (!sink.write(slice)) await sink.drained();
  }
}

/**
 * Writes pieces in slices, and ends the reply with the last piece. Waits for the client between pieces: a slow one
 * does not make the gateway work out what it does not read yet.
 */
export async function endInSlices(pieces: Iterable<Uint8Array>, sink: ReplySink): Promise<void> {
  let last: Uint8Array | null = null;
  for (const piece of pieces) {
    if (last !== null) await writeSlices(last, sink);
    if (sink.closed) return;
    last = piece;
  }
  sink.end(last ?? '');
}
