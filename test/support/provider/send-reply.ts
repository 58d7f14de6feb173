import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises';
import type { Behaviour } from './behaviour.ts';
import { seededRandom } from './random.ts';
import type { Segment } from './reply.ts';

/** Records what was sent. */
export interface Delivery {
  /** Bytes of the body that were written to the socket. */
  bytes: number;
  /** Called for each segment after its last byte was written. */
  delivered(segment: Segment): void;
}

export type SendEnd = 'finished' | 'cut' | 'client_closed';

const SPLIT_BYTES_MAX = 48;

/**
 * Sends the body with the faults of the behaviour. The head is sent with the first byte, or before it if the body is
 * empty.
 */
export async function sendBody(
  response: ServerResponse,
  segments: Iterable<Segment>,
  behaviour: Behaviour,
  delivery: Delivery,
): Promise<SendEnd> {
  const left = new AbortController();
  response.once('close', () => left.abort());
  const cutAt = Math.min(behaviour.cutAt ?? Infinity, behaviour.resetAt ?? Infinity);
  const stallAt = behaviour.stallAt ?? Infinity;
  const pieceSize = pieceSizes(behaviour);
  const unhurried = cutAt === Infinity && stallAt === Infinity && pieceSize === null && behaviour.tokenMs === 0;
  const stall = () => behaviour.stallUntil ?? silence(behaviour.stallMs, left.signal);
  let stalled = false;

  try {
    response.flushHeaders();
    for (const segment of segments) {
      if (left.signal.aborted) return 'client_closed';
      if (behaviour.tokenMs > 0 && segment.tokens > 0) await silence(behaviour.tokenMs, left.signal);
      if (unhurried) {
        delivery.bytes += segment.bytes.length;
        if (!response.write(segment.bytes)) await once(response, 'drain', { signal: left.signal });
        delivery.delivered(segment);
        continue;
      }
      for (let offset = 0; offset < segment.bytes.length;) {
        if (!stalled && delivery.bytes === stallAt) {
          stalled = true;
          await stall();
        }
        if (delivery.bytes === cutAt) return await cut(response, behaviour, left.signal);
        const boundary = Math.min(cutAt, stalled ? Infinity : stallAt) - delivery.bytes;
        const piece = segment.bytes.subarray(offset, offset + Math.min(boundary, pieceSize?.() ?? Infinity));
        offset += piece.length;
        delivery.bytes += piece.length;
        if (!response.write(piece)) await once(response, 'drain', { signal: left.signal });
        if (behaviour.dribbleMs !== null && behaviour.dribbleMs > 0) await silence(behaviour.dribbleMs, left.signal);
        // Waits one turn of the event loop between writes, so that pieces are sent as separate packets.
        else if (pieceSize !== null) await nextTurn();
        if (left.signal.aborted) return 'client_closed';
      }
      delivery.delivered(segment);
    }
    if (!stalled && delivery.bytes === stallAt) await stall();
    if (cutAt <= delivery.bytes) return await cut(response, behaviour, left.signal);
    response.end();
    await once(response, 'finish', { signal: left.signal });
    return 'finished';
  } catch (error) {
    if (left.signal.aborted) return 'client_closed';
    throw error;
  }
}

/** Closes in the middle of the response head, after `cutHeadAt` of its bytes. */
export async function cutHead(response: ServerResponse, status: number, at: number): Promise<void> {
  const head = Buffer.from(
    `HTTP/1.1 ${status} OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n`,
  );
  const socket = response.socket;
  if (socket === null || socket.destroyed) return;
  if (at > 0) await new Promise((resolve) => socket.write(head.subarray(0, at), resolve));
  socket.destroy();
}

/** Waits. With Infinity it ends only when the client leaves. */
export async function silence(ms: number, signal: AbortSignal): Promise<void> {
  if (ms === Infinity) {
    // No timer is needed, because the socket keeps the process alive.
    if (!signal.aborted) await once(signal, 'abort');
    signal.throwIfAborted();
    return;
  }
  await pause(ms, undefined, { signal });
}

async function cut(response: ServerResponse, behaviour: Behaviour, signal: AbortSignal): Promise<'cut'> {
  const socket = response.socket;
  if (socket === null || signal.aborted) return 'cut';
  if (behaviour.resetAt !== null) socket.resetAndDestroy();
  else {
    // The callback of an empty write runs after everything before it is written. Then FIN is sent.
    await new Promise((resolve) => socket.write('', resolve));
    socket.destroy();
  }
  return 'cut';
}

/** Returns a generator of sizes for the pieces of segments. null: segments are sent whole. */
function pieceSizes(behaviour: Behaviour): (() => number) | null {
  if (behaviour.dribbleMs !== null) return () => 1;
  if (behaviour.splitSeed === null) return null;
  const random = seededRandom(behaviour.splitSeed);
  return () => 1 + Math.floor(random() * SPLIT_BYTES_MAX);
}
