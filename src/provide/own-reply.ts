import { constants, type ServerHttp2Stream } from 'node:http2';
import { PROXY_FAILURE_HEADER, resetStream, type ProxyFailure } from '#network/tunnel';

const FAILURES = {
  upstream_unreachable: [502, 'the upstream cannot be reached'],
  upstream_timeout: [504, 'the upstream did not answer in time'],
  upstream_broken: [502, 'the upstream broke off before it answered'],
  unknown_service: [404, 'there is no such service here'],
  draining: [503, 'the provider is shutting down'],
} as const satisfies Record<ProxyFailure, readonly [number, string]>;

/**
 * Answers a call in the proxy's own name. The gateway learns what kind of failure it is, and no address. `text`
 * writes the body where it is not the usual one. Without effect on a stream that is gone.
 */
export function refuse(stream: ServerHttp2Stream, failure: ProxyFailure, text?: (message: string) => string): void {
  const [status, message] = FAILURES[failure];
  const body = text?.(message) ?? JSON.stringify({ error: { message, type: failure, code: status } });
  sendJson(stream, status, body, { [PROXY_FAILURE_HEADER]: failure });
}

/** A whole reply of JSON. Without effect on a stream that is gone. */
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
  // What is still to come of a request that is answered already is let go.
  stream.resume();
}

/** Ends a reply that cannot be completed, by a reset. What was sent before arrives first. */
export function breakOff(stream: ServerHttp2Stream): void {
  if (stream.destroyed || stream.closed) return;
  const reset = () => resetStream(stream, constants.NGHTTP2_INTERNAL_ERROR);
  if (stream.writableLength === 0) reset();
  else stream.write('', reset);
}
