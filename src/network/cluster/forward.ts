import { constants, type Http2Stream, type ServerHttp2Stream, type ServerStreamResponseOptions } from 'node:http2';
import { resetStream, watchEnd } from '../tunnel/stream-end.ts';
import { CONNECTION_HEADER, UNKNOWN_CONNECTION, type CallSession } from '../tunnel/tunnels.ts';
import { PROXY_FAILURE_HEADER } from '../tunnel/wire.ts';

const { NGHTTP2_NO_ERROR, NGHTTP2_INTERNAL_ERROR, NGHTTP2_CANCEL, NGHTTP2_FLAG_END_STREAM } = constants;

/** Headers of this hop only. Each session adds its own. */
const HOP: ReadonlySet<string> = new Set([':scheme', ':authority', CONNECTION_HEADER]);

/** Node supports `sendDate`, but its types lack it. */
const HEAD = { endStream: false, sendDate: false } as ServerStreamResponseOptions;
const HEAD_ONLY = { endStream: true, sendDate: false } as ServerStreamResponseOptions;

/**
 * Forwards a stream of another gateway into a tunnel. Request and reply stay unchanged, including the order of header
 * lines. Backpressure works in both directions. A reset on one side resets the other side with the same code.
 */
export function forward(
  caller: ServerHttp2Stream,
  rawHeaders: readonly string[],
  flags: number,
  session: CallSession,
): void {
  const headers: string[] = [];
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]!;
    if (!HOP.has(name)) headers.push(name, rawHeaders[at + 1]!);
  }
  const endStream = (flags & NGHTTP2_FLAG_END_STREAM) !== 0;
  // Errors are ignored here, because the code with which the stream closes has the cause.
  caller.on('error', ignore);
  const tunnel = open(session, headers, endStream);
  if (tunnel === null) return resetStream(caller, NGHTTP2_INTERNAL_ERROR);
  tunnel.on('error', ignore);
  const repliedWhole = watchEnd(tunnel);

  if (!endStream) passOn(caller, tunnel, watchEnd(caller));
  tunnel.once('response', (_headers, responseFlags, rawResponse) => {
    if (caller.destroyed || caller.closed) return;
    const end = (responseFlags & NGHTTP2_FLAG_END_STREAM) !== 0;
    try {
      caller.respond(rawResponse, end ? HEAD_ONLY : HEAD);
    } catch {
      // HTTP/2 allows statuses that Node refuses, such as 600.
      return resetStream(caller, NGHTTP2_INTERNAL_ERROR);
    }
    if (end) tunnel.resume();
    else passOn(tunnel, caller, repliedWhole);
  });
  tunnel.once('close', () => {
    // If the reply is complete before the request, the caller need not send the rest.
    if (repliedWhole() && caller.headersSent && tunnel.rstCode === NGHTTP2_NO_ERROR) caller.close(NGHTTP2_NO_ERROR);
    else resetStream(caller, tunnel.rstCode || NGHTTP2_CANCEL);
  });
  caller.once('close', () => resetStream(tunnel, caller.rstCode || NGHTTP2_CANCEL));
}

/**
 * Opens the stream in the tunnel. null if Node refuses to send the received headers, such as those of a CONNECT.
 * Without the catch, the exception would end this process.
 */
function open(
  session: CallSession,
  headers: readonly string[],
  endStream: boolean,
): ReturnType<CallSession['request']> | null {
  try {
    return session.request(headers, { endStream });
  } catch {
    return null;
  }
}

function passOn(from: Http2Stream, to: Http2Stream, whole: () => boolean): void {
  from.pipe(to, { end: false });
  from.once('end', () => {
    if (whole()) to.end();
    else resetStream(to, from.rstCode || NGHTTP2_CANCEL);
  });
}

/** Tells another gateway that the requested connection is not here. */
export function refuse(caller: ServerHttp2Stream): void {
  caller.on('error', ignore);
  caller.respond({ ':status': 404, [PROXY_FAILURE_HEADER]: UNKNOWN_CONNECTION }, { endStream: true });
}

function ignore(): void {}
