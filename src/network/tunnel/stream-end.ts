import type { Http2Stream } from 'node:http2';

/*
 * How a stream ends matters here: a reply that was cut must never look like one that came whole. Node's HTTP/2
 * blurs that on both sides.
 */

/**
 * Resets a stream so that the other end sees a reset. Node's own `close(code)` ends the writable side first. Where
 * nothing waits to be sent, the other end would get END_STREAM, which says that the reply is complete.
 */
export function resetStream(stream: Http2Stream, code: number): void {
  if (stream.closed || stream.destroyed) return;
  // What Node calls to send END_STREAM once all is written.
  stream._final = (done) => done();
  stream.close(code);
}

/**
 * To be called before anything is read of a stream: tells, once its `end` was emitted, whether the other end sent
 * END_STREAM. Node emits `end` as well when the stream was reset without an error or its session was given up,
 * after it has marked the stream as closed.
 */
export function watchEnd(stream: Http2Stream): () => boolean {
  let whole = false;
  const { push } = stream;
  stream.push = (chunk, encoding) => {
    if (chunk === null && !stream.closed && !stream.destroyed) whole = true;
    return push.call(stream, chunk, encoding);
  };
  return () => whole;
}
