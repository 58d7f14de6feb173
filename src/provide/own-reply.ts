import { constants, type ServerHttp2Stream } from 'node:http2';
import { PROXY_FAILURE_HEADER, resetStream, type ProxyFailure } from '#network/tunnel';

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

/** Sends a whole JSON reply. Does nothing if the stream is closed. */
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
