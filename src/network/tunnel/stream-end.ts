import type { Http2Stream, ServerHttp2Stream } from 'node:http2';

/*
 * A reply that broke off must never look like a complete one. Node's HTTP/2 does not separate the two cases clearly,
 * neither when it sends nor when it receives.
 */

/**
 * Resets a stream so that the other end sees a reset. Node's own `close(code)` ends the writable side first. If nothing
 * waits to be sent, the other end would get END_STREAM, which means that the reply is complete.
 */
export function resetStream(stream: Http2Stream, code: number): void {
  if (stream.closed || stream.destroyed) return;
  // Node calls `_final` to send END_STREAM once everything is written.
  stream._final = withoutEnd;
  stream.close(code);
}

const withoutEnd = (done: () => void): void => done();

/**
 * Returns a function that tells, after the `end` event, whether the other end sent END_STREAM. Call it before anything
 * is read from the stream. Node also emits `end` when the stream was reset without an error or its session was
 * destroyed. In these cases it has marked the stream as closed before.
 */
export function watchEnd(stream: Http2Stream): () => boolean {
  let whole = false;
  const { push } = stream;
  const watched: typeof push = (chunk, encoding) => {
    if (chunk === null && !stream.closed && !stream.destroyed) whole = true;
    return push.call(stream, chunk, encoding);
  };
  stream.push = watched;
  return () => whole;
}

/**
 * Reads the end of a request without a body. Call it before the reply. If nothing of a request was read, Node closes
 * its stream at the end of the reply, although END_STREAM may still wait to be sent. The other end would then get
 * RST_STREAM in its place, and could not tell that the reply is complete.
 */
export function readEmptyRequest(stream: ServerHttp2Stream): void {
  if (stream.endAfterHeaders) stream.resume();
}
