import { once } from 'node:events';
import {
  createSecureServer,
  type ServerHttp2Session,
  type ServerHttp2Stream,
  constants,
  type Http2Stream,
} from 'node:http2';
import type { AddressInfo, Socket } from 'node:net';
import { readEmptyRequest, resetStream, respondUnchanged, watchEnd } from './tunnel/http2-streams.ts';
import { answerEndCall, type CallToEnd } from './end-call.ts';
import {
  CONNECTION_HEADER,
  END_CALL_HEADER,
  FILE_HEADER,
  keepAlive,
  peerKeys,
  SESSION_OPTIONS,
  SILENCE_MS,
  TLS_OPTIONS,
  UNKNOWN_CONNECTION,
} from './peers.ts';
import type { SealSecret } from '#security';
import type { Tunnels } from './tunnel/tunnels.ts';
import type { CallSession } from './tunnel/tunnel.ts';
import { PROXY_FAILURE_HEADER } from './tunnel-wire.ts';

export interface PeerListenerOptions {
  /** Shared by the gateways of one database. */
  readonly secret: SealSecret;
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  /**
   * The URL at which other gateways reach this listener. Port 0 stands for the port that it listens on. Default: `host`
   * with that port.
   */
  readonly url?: string;
  /** Timeout of the TLS handshake, in which a connection proves that it knows the secret. */
  readonly handshakeMs?: number;
  /** The connection to a gateway that answers no pings for this time is closed. */
  readonly silenceMs?: number;
}

/** The parts that other gateways use through this listener. */
interface SharedWithPeers {
  readonly tunnels: Pick<Tunnels, 'session'>;
  /** Sends a file to another gateway. `fileRequest` is the value of FILE_HEADER. Default: no files. */
  readonly giveFile?: (stream: ServerHttp2Stream, fileRequest: string) => void;
  /** Ends a call of this gateway. Returns whether it was at work here. Default: none is. */
  readonly endCall?: (call: CallToEnd) => boolean;
}

const NOTHING_SHARED: SharedWithPeers = { tunnels: { session: () => null } };

export interface PeerListener {
  /** The URL for other gateways. Throws before the listener listens. */
  readonly url: string;
  listen(): Promise<void>;
  /**
   * Shares these parts from now on. They are made after the listener, because the registry needs its URL. Until then
   * nothing is found here.
   */
  share(parts: SharedWithPeers): void;
  /** Refuses new connections and streams, lets running streams finish within `drainMs`, then closes the rest. */
  close(drainMs: number): Promise<void>;
}

/**
 * Connections before the end of their handshake. Beyond this number the oldest is closed. Gateways are not affected,
 * because their handshake takes milliseconds.
 */
const STRANGERS_MAX = 64;
const CONNECTIONS_MAX = 4_096;

export function createPeerListener(options: PeerListenerOptions): PeerListener {
  const { host, port, handshakeMs = 5_000, silenceMs = SILENCE_MS } = options;
  const keys = new Map(peerKeys(options.secret).map(({ identity, key }) => [identity, key]));
  const sessions = new Set<ServerHttp2Session>();
  const strangers = new Map<string, Socket>();
  let url: string | null = null;
  let shared = NOTHING_SHARED;

  const server = createSecureServer({
    ...TLS_OPTIONS,
    ALPNProtocols: [...TLS_OPTIONS.ALPNProtocols],
    ...SESSION_OPTIONS,
    handshakeTimeout: handshakeMs,
    unknownProtocolTimeout: 100,
    pskCallback: (_socket, claimed) => keys.get(claimed) ?? null,
  });
  server.maxConnections = CONNECTIONS_MAX;

  server.on('connection', (socket: Socket) => {
    const from = addressOf(socket);
    strangers.set(from, socket);
    socket.once('close', () => strangers.delete(from));
    if (strangers.size <= STRANGERS_MAX) return;
    const [oldest] = strangers.values();
    oldest!.destroy();
  });
  server.on('secureConnection', (socket: Socket) => strangers.delete(addressOf(socket)));
  server.on('session', (session) => {
    sessions.add(session);
    session.once('close', () => sessions.delete(session));
    keepAlive(session, { silenceMs });
  });

  server.on('stream', (stream: ServerHttp2Stream, headers, flags, rawHeaders) => {
    readEmptyRequest(stream);
    const file = headers[FILE_HEADER];
    const { tunnels, giveFile, endCall } = shared;
    if (typeof file === 'string' && giveFile) return giveFile(stream, file);
    const toEnd = headers[END_CALL_HEADER];
    if (typeof toEnd === 'string' && endCall) {
      stream.on('error', ignore);
      return stream.respond({ ':status': answerEndCall(toEnd, endCall) }, { endStream: true });
    }
    const connection = headers[CONNECTION_HEADER];
    const session = typeof connection === 'string' ? tunnels.session(connection) : null;
    if (!session || session.closed || session.destroyed) refuse(stream);
    else forward(stream, rawHeaders, flags, session);
  });

  return {
    get url() {
      if (url === null) throw new Error('the listener for other gateways has no address before it listens');
      return url;
    },
    async listen() {
      // `exclusive`: processes that share the public port each have their own listener for gateways.
      server.listen({ host, port, exclusive: true });
      await once(server, 'listening');
      url = urlOf(
        options.url ?? `https://${host.includes(':') ? `[${host}]` : host}:0`,
        (server.address() as AddressInfo).port,
      );
    },
    share(parts) {
      shared = parts;
    },
    async close(drainMs) {
      const closed = new Promise<void>((resolve) => {
        if (server.listening) server.once('close', resolve);
        else resolve();
      });
      // This also tells every session to open no more streams.
      server.close();
      for (const socket of strangers.values()) socket.destroy();
      const cut = setTimeout(() => {
        for (const session of sessions) session.destroy();
      }, drainMs);
      await closed;
      clearTimeout(cut);
    },
  };
}

/** Identifies a connection. The plain socket and the TLS socket have the same value. */
const addressOf = (socket: Socket) => `${socket.remoteAddress} ${socket.remotePort}`;

/** The origin of the configured URL. Port 0 is replaced by the port that the listener uses. */
function urlOf(configured: string, listening: number): string {
  const url = new URL(configured);
  if (url.port === '0') url.port = String(listening);
  return url.origin;
}

const { NGHTTP2_NO_ERROR, NGHTTP2_INTERNAL_ERROR, NGHTTP2_CANCEL, NGHTTP2_FLAG_END_STREAM } = constants;

/** Headers of this hop only. Each session adds its own. */
const HOP: ReadonlySet<string> = new Set([':scheme', ':authority', CONNECTION_HEADER]);

/**
 * Forwards a stream of another gateway into a tunnel. Request and reply stay unchanged, including the order of header
 * lines. Backpressure works in both directions. A reset on one side resets the other side with the same code.
 */
function forward(caller: ServerHttp2Stream, rawHeaders: readonly string[], flags: number, session: CallSession): void {
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
      respondUnchanged(caller, rawResponse, end);
    } catch {
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
function refuse(caller: ServerHttp2Stream): void {
  caller.on('error', ignore);
  caller.respond({ ':status': 404, [PROXY_FAILURE_HEADER]: UNKNOWN_CONNECTION }, { endStream: true });
}

function ignore(): void {}
