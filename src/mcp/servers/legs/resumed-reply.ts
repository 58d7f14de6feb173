import { setTimeout as sleep } from 'node:timers/promises';
import { tooLarge, UpstreamFailure } from '#wire';
import {
  hasEvents,
  type Marker,
  readReply,
  type Received,
  type Send,
  type UpstreamExchange,
  type UpstreamReply,
} from '#gateway';
import { failure, sessionHeaders } from '../legacy-server.ts';
import type { LegacySession } from '../../turn/session.ts';

/** Before a stream is asked for again whose server said nothing of it. */
const RETRY_MS = 1_000;
const RETRY_MS_MIN = 10;
const RETRY_MS_MAX = 30_000;
/** Tries in a row that fail. */
const FAILURES_MAX = 3;
/** Servers may end a stream on purpose and be asked again and again while a tool works. */
const RESUMPTIONS_MAX = 1_000;

export interface ResumedReplyOptions {
  readonly session: LegacySession;
  readonly send: Send;
  /** Aborts to end it; its reason is thrown. */
  readonly signal: AbortSignal;
  /** Of all events together. */
  readonly bytesMax: number;
  /** Told of each exchange that is begun, so that it can be aborted. */
  readonly onExchange: (exchange: UpstreamExchange) => void;
}

/**
 * The messages of a legacy server's reply as one stream: where it ends or breaks and its events had ids, it is gone
 * on with from the last one, so that neither the client nor billing sees a gap. Whoever has read the response reads
 * no further. Throws UpstreamFailure.
 */
export async function* readResumed(
  first: UpstreamReply,
  options: ResumedReplyOptions,
): AsyncGenerator<Received | Marker, void, undefined> {
  let lastId: string | null = null;
  let retryMs = RETRY_MS;
  let bytes = 0;
  let reply = first;
  let failures = 0;
  for (let resumed = 0; resumed < RESUMPTIONS_MAX; resumed++) {
    try {
      for await (const received of readReply(reply, options.bytesMax)) {
        const { eventId, raw } = received;
        bytes += raw?.length ?? 0;
        if (bytes > options.bytesMax)
          throw tooLarge(`the answer of the provider is larger than ${options.bytesMax} bytes`, {
            status: reply.status,
            received: bytes,
          });
        if (eventId !== null) lastId = IN_A_HEADER.test(eventId) ? eventId : null;
        if (received.message === null && received.retryMs !== null)
          retryMs = Math.min(Math.max(received.retryMs, RETRY_MS_MIN), RETRY_MS_MAX);
        failures = 0;
        yield received;
      }
      if (lastId === null) return;
    } catch (error) {
      // What has a status is an answer that cannot be used, and no broken connection.
      if (lastId === null || options.signal.aborted || !(error instanceof UpstreamFailure) || error.status !== null)
        throw error;
    }
    for (;;) {
      await wait(retryMs, options.signal);
      const next = await resume(lastId, options);
      if (next !== null) {
        reply = next;
        break;
      }
      if (++failures >= FAILURES_MAX) throw failure('it broke off its answer and did not go on with it', reply);
    }
  }
  throw failure('it broke off its answer too often', reply);
}

/** What may stand in a Last-Event-ID header. */
const IN_A_HEADER = /^[ -~]{1,1024}$/;

/** The stream behind the event; null where it is not to be had now. */
async function resume(
  lastId: string,
  { session, send, onExchange, signal }: ResumedReplyOptions,
): Promise<UpstreamReply | null> {
  const headers = { accept: 'text/event-stream', 'last-event-id': lastId, ...sessionHeaders(session) };
  const exchange = send({ method: 'GET', path: '', headers, body: null });
  onExchange(exchange);
  let reply: UpstreamReply;
  try {
    reply = await exchange.head;
  } catch (error) {
    if (signal.aborted || !(error instanceof UpstreamFailure)) throw error;
    return null;
  }
  if (hasEvents(reply)) return reply;
  reply.discard();
  return null;
}

async function wait(ms: number, signal: AbortSignal): Promise<void> {
  try {
    await sleep(ms, undefined, { signal });
  } catch {
    throw signal.reason;
  }
}
