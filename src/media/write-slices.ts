import { setImmediate as nextTurn } from 'node:timers/promises';
import type { ReplySink } from '#wire';

/** The system takes so much in a fraction of a millisecond. */
const SLICE_BYTES = 256 * 1024;

/**
 * Writes large bytes to a client, a slice in each turn of the event loop: of 40 MB the system would take much in one
 * call, which holds up every stream of the process. Waits for a client that reads slower. Ends early where it is gone.
 */
export async function writeSlices(bytes: Uint8Array, sink: ReplySink): Promise<void> {
  for (let at = 0; at < bytes.byteLength && !sink.closed; at += SLICE_BYTES) {
    if (at > 0) await nextTurn();
    if (!sink.write(bytes.subarray(at, at + SLICE_BYTES))) await sink.drained();
  }
}
