import { hkdfSync } from 'node:crypto';
import type { Http2Session, ServerSessionOptions } from 'node:http2';

/** The only suite of ECDHE-PSK that has authenticated encryption. */
const CIPHERS = 'ECDHE-PSK-CHACHA20-POLY1305';
/** Name of the key in the handshake. It tells nobody anything, and lets a later way of deriving keys have another. */
const PSK_IDENTITY = 'tollgate-peers-v1';

/** Memory for a stream whose reader stalls. */
const STREAM_WINDOW = 64 * 1024;
/**
 * Received bytes count against this window only until they are handed to their stream, so a stalled stream never
 * takes it from the others.
 */
const SESSION_WINDOW = 16 * 1024 * 1024;
const STREAMS_MAX = 16_384;
const HEADER_BYTES_MAX = 64 * 1024;
const HEADER_PAIRS_MAX = 256;

/** TLS of both ends. A peer without the secret fails at the handshake. */
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

/** The key of the handshake, from a secret of any length. */
export function peerKey(secret: Buffer): PeerKey {
  return { identity: PSK_IDENTITY, key: Buffer.from(hkdfSync('sha256', secret, '', PSK_IDENTITY, 32)) };
}

/** HTTP/2 of both ends. */
export const SESSION_OPTIONS = {
  settings: {
    enablePush: false,
    initialWindowSize: STREAM_WINDOW,
    maxConcurrentStreams: STREAMS_MAX,
    maxHeaderListSize: HEADER_BYTES_MAX,
  },
  maxHeaderListPairs: HEADER_PAIRS_MAX,
  // In megabytes. The default refuses new streams when some hundred stalled ones hold what they may.
  maxSessionMemory: (STREAMS_MAX * STREAM_WINDOW) / (1024 * 1024),
  // Header lines are passed on as they came; whether one may come twice is for the ends to say.
  strictSingleValueFields: false,
  // The defaults, meant for strangers, end a session when more than 33 calls a second are cancelled.
  streamResetBurst: 1_000_000,
  streamResetRate: 1_000_000,
} as const satisfies ServerSessionOptions;

/**
 * Waits for an answer to a ping in this many turns of `everyMs`. Turns are counted, not time: a process that slept
 * must not take its peers for dead.
 */
const TURNS = 4;

interface PingOptions {
  /** A session that answers nothing this long is ended. */
  readonly silenceMs: number;
}

export const SILENCE_MS = 10_000;

/**
 * Sets up a session that has just been made, on either end: its window, and pings until it ends. A far end that
 * stops answering is gone.
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
