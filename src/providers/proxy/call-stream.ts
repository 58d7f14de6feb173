import { type ServerHttp2Stream, constants } from 'node:http2';
import { Readable } from 'node:stream';
import { PROXY_FAILURE_HEADER, resetStream, type ProxyFailure } from '#network/tunnel';

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

const FAILURES = {
  upstream_unreachable: [502, 'the upstream cannot be reached'],
  upstream_timeout: [504, 'the upstream did not answer in time'],
  upstream_broken: [502, 'the upstream broke off before it answered'],
  unknown_service: [404, 'this provider does not have this service'],
  draining: [503, 'the provider is shutting down'],
} as const satisfies Record<ProxyFailure, readonly [number, string]>;

/**
 * Answers a call with an error of the proxy itself. The gateway learns the kind of failure, but no address. `text` may
 * format the body in another way. Does nothing if the stream is closed.
 */
export function refuse(stream: ServerHttp2Stream, failure: ProxyFailure, text?: (message: string) => string): void {
  const [status, message] = FAILURES[failure];
  const body = text?.(message) ?? JSON.stringify({ error: { message, type: failure, code: status } });
  sendJson(stream, status, body, { [PROXY_FAILURE_HEADER]: failure });
}

export function sendJson(
  stream: ServerHttp2Stream,
  status: number,
  text: string,
  headers: Readonly<Record<string, string>> = {},
): void {
  if (stream.destroyed || stream.closed || stream.headersSent) return;
  stream.respond({
    ...headers,
    ':status': status,
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
  });
  stream.end(text);
  // The request is answered already, so the rest of its body is read and dropped.
  stream.resume();
}

/** Resets a reply that can't be completed. The bytes written before are sent first. */
export function breakOff(stream: ServerHttp2Stream): void {
  if (stream.destroyed || stream.closed) return;
  const reset = () => resetStream(stream, constants.NGHTTP2_INTERNAL_ERROR);
  if (stream.writableLength === 0) reset();
  else stream.write('', reset);
}
