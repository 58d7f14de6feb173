import {
  connect as connectHttp2,
  type ClientHttp2Session,
  type Http2Session,
  type ServerSessionOptions,
} from 'node:http2';
import { connect as connectTls } from 'node:tls';
import { hkdfSync } from 'node:crypto';
import { type SealSecret, secretsOf } from '#security';
import type { Node } from './registry/presence.ts';

export interface PeersOptions {
  /** Shared by the gateways of one database. A connection proves the first one. */
  readonly secret: SealSecret;
  /**
   * Called when a connection to another gateway failed or broke, and then not again until one succeeds. The streams of
   * the connection have failed. The next use opens a new one.
   */
  readonly onError?: (node: Node, error: Error) => void;
  /** Timeout for opening a connection. */
  readonly connectMs?: number;
  readonly silenceMs?: number;
}

/**
 * Connections to the other gateways. Each gateway has one, which stays open until it breaks. A session accepts streams
 * while it connects. They fail if the connection fails. The handshake proves that the peer knows the secret, but not
 * that it is the intended gateway. A wrong gateway refuses the stream, because it does not have the tunnel.
 */
export function createPeers({ secret, onError, connectMs = 5_000, silenceMs = SILENCE_MS }: PeersOptions): Peers {
  const [key] = peerKeys(secret);
  const sessions = new Map<string, ClientHttp2Session>();
  /** Gateways whose failure was reported. Calls that wait for a missing gateway retry many times a second. */
  const failing = new Set<string>();
  let closing = false;

  const open = (node: Node): ClientHttp2Session => {
    const session = connect(node.url, key!);
    const late = setTimeout(() => session.destroy(new Error(`no connection within ${connectMs} ms`)), connectMs);
    session.once('connect', () => {
      clearTimeout(late);
      failing.delete(node.url);
      keepAlive(session, { silenceMs });
    });
    session.on('error', (error) => {
      if (!failing.has(node.url)) onError?.(node, error);
      failing.add(node.url);
    });
    session.once('close', () => {
      clearTimeout(late);
      if (sessions.get(node.url) === session) sessions.delete(node.url);
    });
    return session;
  };

  return {
    session(node) {
      if (closing) throw new Error('this gateway is closing its connections to others');
      const known = sessions.get(node.url);
      // A session is `closed` when its peer shuts down. Such a peer finishes running streams but refuses new ones.
      if (known && !known.closed && !known.destroyed) return known;
      const session = open(node);
      sessions.set(node.url, session);
      return session;
    },
    async close() {
      closing = true;
      await Promise.all(
        [...sessions.values()].map(
          (session) =>
            new Promise<void>((resolve) => {
              session.once('close', resolve);
              session.destroy();
            }),
        ),
      );
    },
  };
}

function connect(url: string, { identity, key }: PeerKey): ClientHttp2Session {
  const { hostname, port } = new URL(url);
  return connectHttp2(url, {
    ...SESSION_OPTIONS,
    createConnection: () =>
      connectTls({
        ...TLS_OPTIONS,
        ALPNProtocols: [...TLS_OPTIONS.ALPNProtocols],
        host: hostname.replace(/^\[|\]$/g, ''),
        port: Number(port || 443),
        pskCallback: () => ({ identity, psk: key }),
        // There are no certificates. Both ends prove that they know the key.
        checkServerIdentity: () => undefined,
      }),
  });
}

/** The other gateways of the same database. */
export interface Peers {
  /**
   * The HTTP/2 session to another gateway. It is opened at first use, and again after it broke. The other gateway
   * forwards each stream, unchanged, into the tunnel that CONNECTION_HEADER names.
   */
  session(node: Node): ClientHttp2Session;
  close(): Promise<void>;
}

/** Header on a stream between two gateways: the id of the connection that the stream is for. */
export const CONNECTION_HEADER = 'x-tollgate-connection';

/** Header on a stream between two gateways: the requested file and the range of bytes. */
export const FILE_HEADER = 'x-tollgate-file';

/** Header on a stream between two gateways: a call that the operator ends, see CallToEnd. */
export const END_CALL_HEADER = 'x-tollgate-end-call';

/**
 * Value of PROXY_FAILURE_HEADER in the 404 of a gateway that does not have the connection, because it ended or the
 * gateway was restarted. The request was not forwarded.
 */
export const UNKNOWN_CONNECTION = 'unknown_connection';

/** The only suite of ECDHE-PSK that has authenticated encryption. */
const CIPHERS = 'ECDHE-PSK-CHACHA20-POLY1305';
/** The name of the key in the handshake. It is public. A later version of the key derivation can use another name. */
const PSK_IDENTITY = 'tollgate-peers-v1';

/** Flow-control window of a stream: the most that a stalled reader keeps in memory. */
const STREAM_WINDOW = 64 * 1024;
/**
 * Received bytes use this window only until they are passed to their stream, so a stalled stream never blocks the
 * others.
 */
const SESSION_WINDOW = 16 * 1024 * 1024;
const STREAMS_MAX = 16_384;
const HEADER_BYTES_MAX = 64 * 1024;
const HEADER_PAIRS_MAX = 256;

/** TLS options of both ends. The handshake fails for a peer without the secret. */
export const TLS_OPTIONS = {
  ciphers: CIPHERS,
  minVersion: 'TLSv1.2',
  maxVersion: 'TLSv1.2',
  ALPNProtocols: ['h2'],
} as const;

interface PeerKey {
  readonly identity: string;
  readonly key: Buffer;
}

/**
 * Derives the keys of the handshake from secrets of any length. The name of a key tells which it is, while gateways
 * have several. Of one alone every gateway knows which it is.
 */
export function peerKeys(secret: SealSecret): readonly PeerKey[] {
  const keys = secretsOf(secret).map((each) => {
    const derive = (length: number, info: string) => Buffer.from(hkdfSync('sha256', each, '', info, length));
    return {
      identity: `${PSK_IDENTITY} ${derive(8, `${PSK_IDENTITY} name`).toString('hex')}`,
      key: derive(32, PSK_IDENTITY),
    };
  });
  const alone = { identity: PSK_IDENTITY, key: keys[0]!.key };
  return keys.length === 1 ? [alone, ...keys] : [...keys, alone];
}

/** HTTP/2 options of both ends. */
export const SESSION_OPTIONS = {
  settings: {
    enablePush: false,
    initialWindowSize: STREAM_WINDOW,
    maxConcurrentStreams: STREAMS_MAX,
    maxHeaderListSize: HEADER_BYTES_MAX,
  },
  maxHeaderListPairs: HEADER_PAIRS_MAX,
  // In megabytes. With the default, about a hundred stalled streams with full windows would make the session refuse new
  // ones.
  maxSessionMemory: (STREAMS_MAX * STREAM_WINDOW) / (1024 * 1024),
  // Header lines are forwarded unchanged. The two ends decide whether a line may occur twice.
  strictSingleValueFields: false,
  // The defaults protect against strangers: they end a session when more than 33 calls a second are cancelled.
  streamResetBurst: 1_000_000,
  streamResetRate: 1_000_000,
} as const satisfies ServerSessionOptions;

/**
 * A ping may stay unanswered for this many ticks of the timer. Ticks are counted instead of time, so that a process
 * that was suspended does not take its peers for dead.
 */
const TURNS = 4;

interface PingOptions {
  /** A session that does not answer a ping for this time is destroyed. */
  readonly silenceMs: number;
}

export const SILENCE_MS = 10_000;

/**
 * Sets up a new session on either end: sets its window, and sends pings until it closes. A session that stops answering
 * is destroyed.
 */
export function keepAlive(session: Http2Session, { silenceMs }: PingOptions): void {
  session.setLocalWindowSize(SESSION_WINDOW);
  let waiting = 0;
  const turn = setInterval(() => {
    if (session.destroyed) clearInterval(turn);
    else if (waiting === 0) {
      waiting = 1;
      session.ping(() => {
        waiting = 0;
      });
    } else if (waiting < TURNS) waiting += 1;
    else session.destroy(new Error(`the other gateway did not answer for ${silenceMs} ms`));
  }, silenceMs / TURNS);
  turn.unref();
  session.once('close', () => clearInterval(turn));
}
