import { setTimeout as pause } from 'node:timers/promises';
import { UpstreamFailure } from '#wire';
import { readReply, type Received, type Send, type UpstreamExchange } from '#gateway';
import { isSessionLost, readRefusal } from '../../legacy-server.ts';
import { createStreamPosition } from '../../stream-position.ts';

/** The session's own stream, on which its server sends what belongs to no request. */
export interface ServerStream {
  /** Whether the server has such a stream, as far as one can tell. */
  readonly open: Promise<boolean>;
  close(): void;
}

interface ServerStreamOptions {
  readonly send: Send;
  readonly headers: Readonly<Record<string, string>>;
  readonly bytesMax: number;
  readonly onMessage: (received: Received) => void;
  /** Told when nothing more comes. Not called after `close`. */
  readonly onEnd: (why: StreamEnd) => void;
}

/**
 * `none`: the server has no such stream. `lost`: it does not know the session any more. `away`: it could not be
 * reached for long, and may come back.
 */
export type StreamEnd = 'none' | 'lost' | 'away';

const RETRY_MS_MIN = 100;
const RETRY_MS_MAX = 60_000;
/** A stream whose head has not come by then is taken for open: some servers send it with the first event. */
const PRESUME_MS = 50;
/** How often in a row it is opened again without an event. */
const FRUITLESS_MAX = 5;

const CLOSED = new Error('the session needs its stream no more');

/**
 * Opens the stream, and again where it ends, with the id of the last event: a server that keeps its events then
 * repeats what was missed.
 */
export function openServerStream({ send, headers, bytesMax, onMessage, onEnd }: ServerStreamOptions): ServerStream {
  const over = new AbortController();
  const open = Promise.withResolvers<boolean>();
  const presumed = setTimeout(open.resolve, PRESUME_MS, true);
  const opened = (is: boolean) => {
    clearTimeout(presumed);
    open.resolve(is);
  };
  const position = createStreamPosition(RETRY_MS_MIN, RETRY_MS_MAX);
  let exchange: UpstreamExchange | null = null;
  let fruitless = 0;

  /** Reads the stream to its end. Returns why it is not to be opened again; null where it is. */
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
      // 409: the server has not noticed yet that the stream before this one is closed.
      if (reply.status === 409 || reply.status >= 500) return null;
      return refusal !== null && isSessionLost(reply.status, refusal) ? 'lost' : 'none';
    }
    opened(true);
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
        // A stream that broke is opened again.
        if (!(error instanceof UpstreamFailure)) why = 'none';
      }
      if (why !== null) break;
      await pause(position.retryMs, undefined, { signal: over.signal, ref: false }).catch(() => {});
    }
    opened(false);
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
