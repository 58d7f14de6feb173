import type { Http2Stream, ServerHttp2Stream, ServerStreamResponseOptions } from 'node:http2';

/*
 * Streams of Node's HTTP/2. A reply that broke off must never look like a complete one, but Node does not separate the
 * two cases clearly, neither when it sends nor when it receives. And a tunnel counts its waiting bytes itself.
 *
 * Node documents no way to do this, so this file replaces the methods with which Node fills and ends a stream (`push`,
 * `_final`), calls the one with which it asks for more (`_read`), and passes an option that is not documented
 * (`sendDate`). No other file does. test/gateway/network/tunnel/http2-private-parts.test.ts has the versions with which
 * this was checked.
 */

/**
 * Gives each chunk of a stream to `take` when the session reads it, past the stream's own buffer, and null at the end,
 * which Node may report twice. If `take` returns false, the session reads no more of the stream until `readMore`; up to
 * a full window may still come. The stream itself gets only its end, so that it closes.
 */
export function bypassBuffer(stream: Http2Stream, take: (chunk: Buffer | null) => boolean): void {
  const bypassed = stream.push;
  const push = (chunk: Buffer | null): boolean => {
    const isReady = take(chunk);
    return chunk === null ? bypassed.call(stream, null) : isReady;
  };
  stream.push = push;
  readMore(stream);
}

/** Tells a stream with a bypassed buffer that its reader wants more. */
export function readMore(stream: Http2Stream): void {
  stream._read(0);
}

/** Node supports `sendDate`, but its types lack it. */
const UNCHANGED = { endStream: false, sendDate: false } as ServerStreamResponseOptions;
const UNCHANGED_WHOLE = { endStream: true, sendDate: false } as ServerStreamResponseOptions;

/**
 * Sends the head of a reply with exactly these header lines, names and values in alternation: Node adds no `date`. May
 * throw, because HTTP/2 allows statuses that Node refuses, such as 600.
 */
export function respondUnchanged(stream: ServerHttp2Stream, rawHeaders: readonly string[], endStream: boolean): void {
  stream.respond(rawHeaders, endStream ? UNCHANGED_WHOLE : UNCHANGED);
}

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
