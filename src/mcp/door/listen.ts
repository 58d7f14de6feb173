import { createEventReader, errorText, EventError, type SseEvent } from '#wire';
import {
  hasEvents,
  type ListenPlaces,
  OVER,
  parseGuarded,
  type ReplyEnd,
  type UpstreamExchange,
  type UpstreamReply,
} from '#gateway';
import { isSessionLost, readRefusal, refuseOurs, sessionHeaders } from '../servers/legacy-server.ts';
import { ERROR } from '../wire/revisions.ts';
import type { RenewSession } from '../sessions/session-renewal.ts';
import { NO_SESSION, type LegacySession } from '../turn/session.ts';
import type { McpTail, Place } from '../turn/turn.ts';

/**
 * Takes what a server sends outside of any request to the client that listens for it. Run as the conversation of a
 * free call.
 */
export type Listen = (listening: Listening, place: Place) => AsyncGenerator<Uint8Array, ReplyEnd, undefined>;

export interface Listening {
  readonly session: LegacySession;
  /** The client's Last-Event-ID header. */
  readonly lastEventId: string | null;
  /** The session's: aborts when it ends. */
  readonly ended: AbortSignal;
}

export interface ListenOptions {
  readonly places: ListenPlaces;
  /** Longest event. */
  readonly bytesMax: number;
  readonly renew: RenewSession;
  /** For a session in front of a modern server. */
  readonly listenModern: (session: LegacySession, place: Place) => AsyncGenerator<Uint8Array, ReplyEnd, undefined>;
}

/** Sent at once, so that the client has the head of its stream before the first event. */
const OPEN = Buffer.from(': listening\n\n');

export function createListen({ places, bytesMax, renew, listenModern }: ListenOptions): Listen {
  return async function* listen({ session, lastEventId, ended }, place) {
    const taken = places.take(session.account);
    if (taken === null) {
      if (places.draining) return FINISHED;
      const { status, message } = places.refusal();
      return refused(status, message);
    }
    ended.addEventListener('abort', taken.end, { once: true });
    if (ended.aborted) taken.end();
    try {
      if (taken.over.aborted) return FINISHED;
      const watched = {
        ...place,
        send: stoppable(place, taken.over),
        signal: AbortSignal.any([place.signal, taken.over]),
      };
      if (place.facts.era === 'modern') return yield* listenModern(session, watched);
      return yield* listenLegacy(session, lastEventId, watched, { bytesMax, renew });
    } catch (error) {
      if (taken.over.aborted) return FINISHED;
      throw error;
    } finally {
      ended.removeEventListener('abort', taken.end);
      taken.leave();
    }
  };
}

/** Sends so that everything that was sent ends with `signal`. */
function stoppable({ send }: Place, signal: AbortSignal): Place['send'] {
  return (request) => {
    signal.throwIfAborted();
    const exchange: UpstreamExchange = send(request);
    signal.addEventListener('abort', () => exchange.abort(OVER), { once: true });
    return exchange;
  };
}

async function* listenLegacy(
  session: LegacySession,
  lastEventId: string | null,
  place: Place,
  { bytesMax, renew }: Pick<ListenOptions, 'bytesMax' | 'renew'>,
): AsyncGenerator<Uint8Array, ReplyEnd, undefined> {
  if (place.facts.bare) return NO_STREAM;
  const reply = await openStream(session, lastEventId, place, renew);
  if ('tail' in reply) return reply;
  yield OPEN;
  const reader = createEventReader({ bytesMax });
  for (;;) {
    let events: readonly SseEvent[];
    try {
      const chunks = await reply.read();
      if (chunks === null) return FINISHED;
      events = chunks.flatMap((chunk) => reader.push(chunk));
    } catch (error) {
      if (place.signal.aborted && !(error instanceof EventError)) throw error;
      // The client comes back, with the id of the last event that it got.
      return FINISHED;
    }
    for (const event of events) if (isForListener(event)) yield Buffer.from(event.raw);
  }
}

/**
 * Everything but responses: those belong to requests, and a server sends them here only to a client that goes on
 * with the stream of one. What was not paid for would pass; the gateway itself goes on with such streams.
 */
function isForListener({ data }: SseEvent): boolean {
  if (data === '') return true;
  const message = parseGuarded(data, 200);
  return message !== undefined && message !== null && message.kind !== 'response';
}

/** The server's stream, or the answer that it is not to be had with. */
async function openStream(
  session: LegacySession,
  lastEventId: string | null,
  place: Place,
  renew: RenewSession,
): Promise<UpstreamReply | ReplyEnd> {
  for (let lost: string | null = null; ;) {
    const { upstreamId } = session;
    const headers = {
      accept: 'text/event-stream',
      ...(lastEventId === null ? {} : { 'last-event-id': lastEventId }),
      ...sessionHeaders(session),
    };
    const reply = await place.send({ method: 'GET', path: '', headers, body: null, listens: true }).head;
    if (hasEvents(reply)) return reply;
    refuseOurs(reply);
    const refusal = reply.status >= 400 ? await readRefusal(reply) : null;
    reply.discard();
    // A bare 404 says that the server has no such address for GET.
    if (refusal === null || reply.status === 405) return NO_STREAM;
    if (upstreamId === null || lost !== null || !isSessionLost(reply.status, refusal))
      return freeEnd({ status: statusOf(reply), text: refusal.text });
    lost = upstreamId;
    if ((await renew(session, lost, place)) === 'gone') return freeEnd(NO_SESSION);
  }
}

/** To a client, 404 says that its own session is over. */
const statusOf = ({ status }: UpstreamReply) => (status === 404 ? 405 : status);

const freeEnd = (tail: McpTail | null): ReplyEnd => ({
  usage: null,
  outcome: 'free',
  estimated: false,
  finishReason: tail === null ? null : `status ${tail.status}`,
  flags: [],
  tail,
});

const FINISHED = freeEnd(null);

const refused = (status: number, message: string) =>
  freeEnd({ status, text: errorText('null', { code: ERROR.server, message }) });

const NO_STREAM = refused(405, 'This server sends nothing outside of its replies');
