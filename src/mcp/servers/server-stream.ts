import { setTimeout as pause } from 'node:timers/promises';
import { UpstreamFailure } from '#wire';
import { readReply, type Received } from '#json-rpc';
import type { Send, UpstreamExchange } from '#call';
import { isSessionLost, readRefusal } from './legacy-server.ts';
import { createStreamPosition } from './resumable-stream.ts';

/** The session's own stream. On it, the server sends messages that belong to no request. */
export interface ServerStream {
  /** Resolves to whether the server has such a stream. If the server does not answer in time, the guess is yes. */
  readonly open: Promise<boolean>;
  close(): void;
}

interface ServerStreamOptions {
  readonly send: Send;
  readonly headers: Readonly<Record<string, string>>;
  readonly bytesMax: number;
  /** Whether servers of this offer send the head of a stream late. It is learnt here. */
  readonly heads: StreamHeads;
  readonly onMessage: (received: Received) => void;
  /** Called when nothing more will come. Not called after `close`. */
  readonly onEnd: (why: StreamEnd) => void;
}

export interface StreamHeads {
  late: boolean;
}

/**
 * `none`: the server has no such stream. `lost`: the server no longer knows the session. `away`: several attempts in a
 * row failed or brought no event, but the server may come back.
 */
export type StreamEnd = 'none' | 'lost' | 'away';

const RETRY_MS_MIN = 100;
const RETRY_MS_MAX = 60_000;
/**
 * After this time, the stream counts as open, because some servers send its head only with the first event. It is long,
 * because a server that asks before it has the stream asks nobody, and its call hangs.
 */
const PRESUME_MS = 1_000;
/** After this time, the stream of a server that is known to send the head late counts as open. */
const PRESUME_LATE_MS = 50;
/** How many streams in a row may end without an event. */
const FRUITLESS_MAX = 5;

const CLOSED = new Error('the session needs its stream no more');

/**
 * Opens the stream. When it ends, opens it again with the id of the last event, so that a server that stores its events
 * repeats the missed ones.
 */
export function openServerStream({
  send,
  headers,
  bytesMax,
  heads,
  onMessage,
  onEnd,
}: ServerStreamOptions): ServerStream {
  const over = new AbortController();
  const open = Promise.withResolvers<boolean>();
  let isDecided = false;
  const presume = () => {
    if (isDecided) return;
    isDecided = true;
    heads.late = true;
    open.resolve(true);
  };
  // If this process stood still, the head may be here already and is read first.
  const presumed = setTimeout(() => setImmediate(presume), heads.late ? PRESUME_LATE_MS : PRESUME_MS);
  const settle = (is: boolean) => {
    clearTimeout(presumed);
    if (is && !isDecided) heads.late = false;
    isDecided = true;
    open.resolve(is);
  };
  const position = createStreamPosition(RETRY_MS_MIN, RETRY_MS_MAX);
  let exchange: UpstreamExchange | null = null;
  let fruitless = 0;

  /** Reads the stream to its end. Returns why it must not be opened again, or null if it must. */
  async function listen(): Promise<StreamEnd | null> {
    const { lastEventId } = position;
    const resume = lastEventId === null ? {} : { 'last-event-id': lastEventId };
    exchange = send({
      method: 'GET',
      path: '',
      headers: { accept: 'text/event-stream', ...headers, ...resume },
      body: null,
      listens: true,
    });
    const reply = await exchange.head;
    if (reply.status !== 200 || !reply.headers['content-type']?.includes('text/event-stream')) {
      const refusal = reply.status === 404 || reply.status === 400 ? await readRefusal(reply) : null;
      reply.discard();
      // 409 means that the server has not noticed yet that the previous stream is closed.
      if (reply.status === 409 || reply.status >= 500) return null;
      return refusal !== null && isSessionLost(reply.status, refusal) ? 'lost' : 'none';
    }
    settle(true);
    for await (const received of readReply(reply, bytesMax)) {
      fruitless = 0;
      position.read(received);
      if (received.message !== null) onMessage(received);
    }
    return null;
  }

  async function run(): Promise<void> {
    let why: StreamEnd | null = null;
    while (!over.signal.aborted && fruitless++ < FRUITLESS_MAX) {
      try {
        why = await listen();
      } catch (error) {
        // A broken stream is opened again.
        if (!(error instanceof UpstreamFailure)) why = 'none';
      }
      if (why !== null) break;
      await pause(position.retryMs, undefined, { signal: over.signal, ref: false }).catch(() => {});
    }
    settle(false);
    if (!over.signal.aborted) onEnd(why ?? 'away');
  }
  void run();

  return {
    open: open.promise,
    close() {
      over.abort();
      exchange?.abort(CLOSED);
    },
  };
}
