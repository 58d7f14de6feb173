import { hkdfSync } from 'node:crypto';
import type { Http2Session, ServerSessionOptions } from 'node:http2';

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

export interface PeerKey {
  readonly identity: string;
  readonly key: Buffer;
}

/** Derives the key of the handshake from a secret of any length. */
export function peerKey(secret: Buffer): PeerKey {
  return { identity: PSK_IDENTITY, key: Buffer.from(hkdfSync('sha256', secret, '', PSK_IDENTITY, 32)) };
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
