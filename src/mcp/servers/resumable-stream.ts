// Event streams that a server may end early and continue later from the id of the last event.

import { setTimeout as sleep } from 'node:timers/promises';
import { tooLarge, UpstreamFailure } from '#wire';
import { hasEvents, type Marker, readReply, type Received } from '#json-rpc';
import type { Send, UpstreamExchange, UpstreamReply } from '#call';
import { providerFailure } from '../request/ending.ts';
import { sessionHeaders } from './legacy-server.ts';
import type { LegacySession } from '../request/mcp-request.ts';

const RETRY_MS_MIN = 10;
const RETRY_MS_MAX = 30_000;
/** Most attempts in a row that fail. */
const FAILURES_MAX = 3;
/** High, because some servers end the stream on purpose and expect repeated requests while a tool works. */
const RESUMPTIONS_MAX = 1_000;

interface ResumedReplyOptions {
  readonly session: LegacySession;
  readonly send: Send;
  /** Ends the reading when it aborts. The reason is thrown. */
  readonly signal: AbortSignal;
  readonly bytesMax: number;
  /** Called with each new exchange, so that the caller can abort it. */
  readonly onExchange: (exchange: UpstreamExchange) => void;
}

/**
 * The messages of a legacy server's reply as one stream. A reply that ends or breaks after an event with an id is
 * resumed there, so that neither the client nor billing notices a gap. The caller stops reading at the response. Throws
 * UpstreamFailure.
 */
export async function* readResumed(
  first: UpstreamReply,
  options: ResumedReplyOptions,
): AsyncGenerator<Received | Marker, void, undefined> {
  const position = createStreamPosition(RETRY_MS_MIN, RETRY_MS_MAX);
  let bytes = 0;
  let reply = first;
  let failures = 0;
  for (let resumed = 0; resumed < RESUMPTIONS_MAX; resumed++) {
    try {
      for await (const received of readReply(reply, options.bytesMax)) {
        bytes += received.raw?.length ?? 0;
        if (bytes > options.bytesMax)
          throw tooLarge(`the answer of the provider is larger than ${options.bytesMax} bytes`, {
            status: reply.status,
            received: bytes,
          });
        position.read(received);
        failures = 0;
        yield received;
      }
      if (position.lastEventId === null) return;
    } catch (error) {
      // A failure with a status is an unusable answer. Only a broken connection is resumed.
      const brokeOff = error instanceof UpstreamFailure && error.status === null;
      if (position.lastEventId === null || options.signal.aborted || !brokeOff) throw error;
    }
    for (;;) {
      await wait(position.retryMs, options.signal);
      const next = await resume(position.lastEventId, options);
      if (next !== null) {
        reply = next;
        break;
      }
      if (++failures >= FAILURES_MAX) throw providerFailure('its stream broke and could not be resumed', reply.status);
    }
  }
  throw providerFailure('its stream broke too often', reply.status);
}

/** The stream after the event; null if the server does not give it now. */
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

interface StreamPosition {
  /** Id of the last event; null if the stream cannot be resumed. */
  readonly lastEventId: string | null;
  /** The pause before the stream is asked for again, in milliseconds. It is the server's `retry`, within bounds. */
  readonly retryMs: number;
  read(event: Received | Marker): void;
}

const RETRY_MS = 1_000;

/** `retryMsMin`: a server with a shorter `retry` would keep the gateway busy for nothing. */
export function createStreamPosition(retryMsMin: number, retryMsMax: number): StreamPosition {
  const position: StreamPosition & { lastEventId: string | null; retryMs: number } = {
    lastEventId: null,
    retryMs: RETRY_MS,
    read(event) {
      if (event.eventId !== null) position.lastEventId = resumableId(event.eventId);
      if (event.message === null && event.retryMs !== null)
        position.retryMs = Math.min(Math.max(event.retryMs, retryMsMin), retryMsMax);
    },
  };
  return position;
}

/** The id if a Last-Event-ID header can carry it; else null. */
export const resumableId = (eventId: string): string | null => (/^[ -~]{1,1024}$/.test(eventId) ? eventId : null);
