import { setTimeout as pause } from 'node:timers/promises';
import { UpstreamFailure } from '#wire';
import { readReply, type Received, type Send, type UpstreamExchange } from '#gateway';
import { isSessionLost, readRefusal } from '../../legacy-server.ts';

/** The stream of a session on which its server says what belongs to no request. */
export interface Ear {
  /** Whether the server has such a stream, as far as one can tell. */
  readonly open: Promise<boolean>;
  close(): void;
}

export interface EarOptions {
  readonly send: Send;
  readonly headers: Readonly<Record<string, string>>;
  readonly bytesMax: number;
  readonly heard: (received: Received) => void;
  /** There is nothing to hear any more. Not called after `close`. */
  readonly deaf: (why: Deafness) => void;
}

/**
 * `none`: the server has no such stream. `lost`: it does not know the session any more. `away`: it could not be
 * reached for long, and may come back.
 */
export type Deafness = 'none' | 'lost' | 'away';

/** Before a stream that ended is opened again, unless the server says how long. */
const RETRY_MS = 1_000;
/** A server that says less would keep the gateway busy with nothing. */
const RETRY_MS_MIN = 100;
const RETRY_MS_MAX = 60_000;
/** A stream whose head has not come by then is taken for open: some servers send it with the first event. */
const PRESUME_MS = 50;
/** How often in a row it is opened again without hearing anything. */
const FRUITLESS_MAX = 5;

const CLOSED = new Error('the session needs its stream no more');

/**
 * Opens it, and again where it ends, with the id of the last event, so that a server which keeps its events repeats
 * what was missed.
 */
export function createEar({ send, headers, bytesMax, heard, deaf }: EarOptions): Ear {
  const over = new AbortController();
  const open = Promise.withResolvers<boolean>();
  const presumed = setTimeout(open.resolve, PRESUME_MS, true);
  const opened = (is: boolean) => {
    clearTimeout(presumed);
    open.resolve(is);
  };
  let exchange: UpstreamExchange | null = null;
  let lastEventId: string | null = null;
  let retryMs = RETRY_MS;
  let fruitless = 0;

  /** Why there is no use in opening it again; null where there is. */
  async function listen(): Promise<Deafness | null> {
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
      if (received.eventId !== null) lastEventId = received.eventId;
      if (received.message !== null) heard(received);
      else if (received.retryMs !== null) retryMs = Math.min(Math.max(received.retryMs, RETRY_MS_MIN), RETRY_MS_MAX);
    }
    return null;
  }

  async function run(): Promise<void> {
    let why: Deafness | null = null;
    while (!over.signal.aborted && fruitless++ < FRUITLESS_MAX) {
      try {
        why = await listen();
      } catch (error) {
        // What broke is opened again.
        if (!(error instanceof UpstreamFailure)) why = 'none';
      }
      if (why !== null) break;
      await pause(retryMs, undefined, { signal: over.signal, ref: false }).catch(() => {});
    }
    opened(false);
    if (!over.signal.aborted) deaf(why ?? 'away');
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
