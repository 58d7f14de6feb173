import type { ServerHttp2Stream } from 'node:http2';
import { Readable } from 'node:stream';

/**
 * A body up to this size is taken whole, and sent in one piece with its length; so much is waiting in a stream's
 * window anyway.
 */
const WHOLE_BYTES_MAX = 64 * 1024;

/**
 * Calls `take` once with the body of a request: whole where it is small, else as a stream that holds the sender
 * back while nobody reads it.
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
  // The end of a call that was cancelled half-way is not the end of its body.
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
 * Calls `take` once with the whole body, or with null when it is larger than `bytesMax`; not at all where the call
 * is cancelled before.
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
 * The reading half of a call. An HTTP client may destroy it as it likes: the writing half, which the reply needs,
 * stays.
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

  /** The rest is read and dropped, so that the gateway is not kept from reading the reply. */
  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    this.#stream.resume();
    callback(error);
  }
}
