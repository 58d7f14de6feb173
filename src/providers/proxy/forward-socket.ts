import { createServer, type IncomingMessage, request as overHttp } from 'node:http';
import { request as overTls } from 'node:https';
import type { ServerHttp2Stream } from 'node:http2';
import type { Duplex } from 'node:stream';
import { type HttpTarget, keyHeaders, upstreamPath } from '#config';
import type { ProxyFailure } from '#network/tunnel';
import { refuse } from './call-stream.ts';
import { FirstWords, type Forward, leavesBase, type UpstreamRefusal } from './forward.ts';

interface ForwardSocketOptions {
  readonly target: HttpTarget;
  readonly timeoutMs: number;
  /** See ForwardOptions, as for `refused`. */
  readonly failed: (failure: ProxyFailure, error: Error, requestId: string | null) => void;
  readonly refused: (refusal: UpstreamRefusal) => void;
}

interface SocketRequest {
  readonly stream: ServerHttp2Stream;
  readonly path: string;
  readonly rest: string;
}

/** The headers of a handshake that reach the upstream. All others are the gateway's own. */
const SENT = ['sec-websocket-key', 'sec-websocket-version', 'user-agent', 'x-request-id'];
/** The headers of the upstream's answer that reach the gateway. */
const RETURNED = ['sec-websocket-accept', 'content-type', 'content-length'];

/**
 * Creates a function that forwards WebSockets to an HTTP service. The handshake gets the provider's key. After it, the
 * bytes pass unread in both directions, with backpressure.
 */
export function createForwardSocket({ target, timeoutMs, failed, refused }: ForwardSocketOptions): Forward {
  const url = new URL(target.url);
  const base = url.pathname.replace(/\/$/, '');
  const send = url.protocol === 'https:' ? overTls : overHttp;
  const requests = new WeakMap<object, SocketRequest>();
  // It reads the handshakes, and never listens: its connections are streams of the tunnel.
  const server = createServer();
  server.on('upgrade', (handshake, inner, head) => open(handshake, inner, head));
  server.on('request', ({ socket }) => socket.destroy());
  server.on('clientError', (_error, inner) => inner.destroy());

  function open({ headers, socket }: IncomingMessage, inner: Duplex, head: Buffer): void {
    const { stream, path, rest } = requests.get(socket)!;
    const sent = Object.fromEntries(
      SENT.flatMap((name) => (headers[name] === undefined ? [] : [[name, headers[name]]])),
    );
    const upstream = send(new URL(path, url.origin), {
      headers: { ...sent, connection: 'Upgrade', upgrade: 'websocket', ...keyHeaders(target.apiKey, rest) },
      agent: false,
      timeout: timeoutMs,
    });
    const requestId = typeof headers['x-request-id'] === 'string' ? headers['x-request-id'] : null;
    let isAnswered = false;
    const fail = (failure: ProxyFailure, error: Error) => {
      if (isAnswered || stream.closed) return;
      isAnswered = true;
      failed(failure, error, requestId);
      refuse(stream, failure);
    };
    stream.once('close', () => upstream.destroy());
    upstream.once('timeout', () => {
      fail('upstream_timeout', new Error(`no answer to the handshake within ${timeoutMs} ms`));
      upstream.destroy();
    });
    upstream.on('error', (error) => fail('upstream_unreachable', error));
    upstream.on('response', (answer) => {
      isAnswered = true;
      begin(stream, answer);
      const words = new FirstWords();
      answer.on('data', (chunk: Buffer) => words.add(chunk));
      answer.once('end', () => refused({ status: answer.statusCode ?? 0, replyText: words.line, requestId }));
      answer.pipe(inner);
    });
    upstream.on('upgrade', (answer, wire, first) => {
      isAnswered = true;
      wire.setTimeout(0);
      wire.setNoDelay(true);
      begin(stream, answer);
      inner.write(first);
      wire.write(head);
      // The close of the one ends the other, whatever was the cause.
      wire.on('error', () => {});
      wire.once('close', () => inner.destroy());
      stream.once('close', () => wire.destroy());
      wire.pipe(inner);
      inner.pipe(wire);
    });
    upstream.end();
  }

  return (stream, _headers, rest) => {
    if (leavesBase(rest)) return refuse(stream, 'unknown_service');
    requests.set(stream, { stream, path: upstreamPath(base, rest), rest });
    server.emit('connection', stream);
  };
}

function begin(stream: ServerHttp2Stream, { statusCode = 502, statusMessage = '', headers }: IncomingMessage): void {
  if (stream.closed) return;
  stream.respond({ ':status': 200 });
  const lines = RETURNED.flatMap((name) =>
    headers[name] === undefined ? [] : [`${name}: ${String(headers[name])}\r\n`],
  );
  const upgrade = statusCode === 101 ? 'connection: Upgrade\r\nupgrade: websocket\r\n' : 'connection: close\r\n';
  stream.write(`HTTP/1.1 ${statusCode} ${statusMessage}\r\n${upgrade}${lines.join('')}\r\n`);
}
