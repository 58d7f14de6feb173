import { setImmediate as nextTurn } from 'node:timers/promises';
import type { ReplySink } from './reply-sink.ts';

/** The operating system accepts this many bytes in a fraction of a millisecond. */
const SLICE_BYTES = 256 * 1024;

/** Cuts large bytes into slices. Write each slice in a separate turn of the event loop. */
export function* slicesOf(bytes: Uint8Array): Generator<Uint8Array, void, undefined> {
  for (let at = 0; at < bytes.byteLength; at += SLICE_BYTES) yield bytes.subarray(at, at + SLICE_BYTES);
}

/**
 * Writes large bytes to a client, one slice per turn of the event loop. One write of 40 MB could block all streams of
 * the process, because the operating system would accept much of it in a single call. Waits for a slow client. Stops
 * early if the client is gone.
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
 * Writes pieces in slices and ends the reply with the last piece. Waits for the client between pieces, so that a piece
 * is computed only when the client has read the pieces before it.
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
