import { once } from 'node:events';
import { createSecureServer, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2';
import type { AddressInfo, Socket } from 'node:net';
import { CONNECTION_HEADER, FILE_HEADER, type Tunnels } from '../tunnel/tunnels.ts';
import { forward, refuse } from './forward.ts';
import { keepAlive, peerKey, SESSION_OPTIONS, SILENCE_MS, TLS_OPTIONS } from './peer-link.ts';

export interface PeerListenerOptions {
  /** Shared by the gateways of one database. */
  readonly secret: Buffer;
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
  /**
   * The address at which other gateways reach this listener; its port may be 0 where `port` is. Default: `host` and
   * the port listened on.
   */
  readonly url?: string;
  readonly tunnels: Pick<Tunnels, 'session'>;
  /** Gives a file to another gateway: the value of FILE_HEADER says which. Default: it has no files. */
  readonly giveFile?: (stream: ServerHttp2Stream, asked: string) => void;
  /** Time for a connection to prove that it knows the secret. */
  readonly handshakeMs?: number;
  /** A gateway that answers no pings this long is given up. */
  readonly silenceMs?: number;
}

export interface PeerListener {
  /** For other gateways to reach it at. Known once it listens. */
  readonly url: string;
  listen(): Promise<void>;
  /** Takes no more connections and streams, lets running streams end within `drainMs`, then closes the rest. */
  close(drainMs: number): Promise<void>;
}

/**
 * Connections that have not proven anything yet. The oldest makes room: a gateway takes milliseconds to prove itself.
 */
const STRANGERS_MAX = 64;
const CONNECTIONS_MAX = 4_096;

/**
 * The listener through which other gateways of the same database reach the tunnels of this one. It refuses peers that
 * do not know the secret.
 */
export function createPeerListener(options: PeerListenerOptions): PeerListener {
  const { tunnels, host, port, handshakeMs = 5_000, silenceMs = SILENCE_MS } = options;
  const { identity, key } = peerKey(options.secret);
  const sessions = new Set<ServerHttp2Session>();
  const strangers = new Map<string, Socket>();
  let url: string | null = null;

  const server = createSecureServer({
    ...TLS_OPTIONS,
    ALPNProtocols: [...TLS_OPTIONS.ALPNProtocols],
    ...SESSION_OPTIONS,
    handshakeTimeout: handshakeMs,
    unknownProtocolTimeout: 100,
    pskCallback: (_socket, claimed) => (claimed === identity ? key : null),
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
    const file = headers[FILE_HEADER];
    if (typeof file === 'string' && options.giveFile) return options.giveFile(stream, file);
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
      // `exclusive`: processes that share the public port have each a listener of their own.
      server.listen({ host, port, exclusive: true });
      await once(server, 'listening');
      url = urlOf(
        options.url ?? `https://${host.includes(':') ? `[${host}]` : host}:0`,
        (server.address() as AddressInfo).port,
      );
    },
    async close(drainMs) {
      const closed = new Promise<void>((resolve) => {
        if (server.listening) server.once('close', resolve);
        else resolve();
      });
      // Tells every session to open no more streams.
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

/** Both faces of a connection, the plain socket and the TLS one, have the same. */
const addressOf = (socket: Socket) => `${socket.remoteAddress} ${socket.remotePort}`;

/** The address with the port that is listened on where it names none of its own. */
function urlOf(configured: string, listening: number): string {
  const url = new URL(configured);
  if (url.port === '0') url.port = String(listening);
  return url.origin;
}
