import type { ServerHttp2Stream } from 'node:http2';
import { Readable } from 'node:stream';

/**
 * A body up to this size is buffered and sent in one piece with its length. The stream's window may hold this much
 * anyway.
 */
const WHOLE_BYTES_MAX = 64 * 1024;

/**
 * Calls `take` once with the body of a request: a Buffer if it is small, otherwise a stream with backpressure, or null
 * if there is no body.
 */
export function takeBody(stream: ServerHttp2Stream, take: (body: Buffer | Readable | null) => void): void {
  if (stream.endAfterHeaders) return take(null);
  let held: Buffer[] = [];
  let heldBytes = 0;
  const onData = (chunk: Buffer) => {
    held.push(chunk);
    heldBytes += chunk.length;
    if (heldBytes <= WHOLE_BYTES_MAX) return;
    stream.pause();
    stop();
    take(new RequestBody(stream, held));
  };
  const onEnd = () => {
    stop();
    take(held.length === 1 ? held[0]! : Buffer.concat(held));
  };
  const stop = () => {
    stream.off('data', onData);
    stream.off('end', onEnd);
    stream.off('aborted', drop);
  };
  // When a call is cancelled, its stream ends too. This is not the end of the body.
  const drop = () => {
    stop();
    held = [];
    stream.resume();
  };
  stream.on('data', onData);
  stream.on('end', onEnd);
  stream.on('aborted', drop);
}

/**
 * Calls `take` once with the whole body, or with null if it is larger than `bytesMax`. Doesn't call it if the call is
 * cancelled before.
 */
export function takeWhole(stream: ServerHttp2Stream, bytesMax: number, take: (body: Buffer | null) => void): void {
  takeBody(stream, (body) => {
    if (body === null || Buffer.isBuffer(body)) return take(body ?? Buffer.alloc(0));
    const held: Buffer[] = [];
    let heldBytes = 0;
    body.on('data', (chunk: Buffer) => {
      held.push(chunk);
      heldBytes += chunk.length;
      if (heldBytes > bytesMax) body.destroy();
    });
    body.on('error', () => {});
    body.on('close', () => {
      if (body.readableEnded) take(Buffer.concat(held));
      else if (!stream.aborted) take(null);
    });
  });
}

/**
 * The readable half of a call as a stream of its own. An HTTP client may destroy it. The writable half stays open for
 * the reply.
 */
class RequestBody extends Readable {
  readonly #stream: ServerHttp2Stream;

  constructor(stream: ServerHttp2Stream, begun: readonly Buffer[]) {
    super();
    this.#stream = stream;
    for (const chunk of begun) this.push(chunk);
    stream.on('data', (chunk: Buffer) => {
      if (!this.destroyed && !this.push(chunk)) stream.pause();
    });
    stream.on('end', () => {
      if (!stream.aborted) this.push(null);
    });
    stream.on('aborted', () => this.destroy(new Error('the call was cancelled')));
  }

  override _read(): void {
    this.#stream.resume();
  }

  /** Reads and drops the rest of the body. Otherwise the gateway might wait to send it and not read the reply. */
  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    this.#stream.resume();
    callback(error);
  }
}
