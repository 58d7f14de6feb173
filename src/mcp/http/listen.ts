import { createEventReader, EventError, eventText, type SseEvent, UpstreamFailure } from '#wire';
import { errorText, hasEvents, parseGuarded } from '#json-rpc';
import { type StreamQuota, OVER } from '#limits';
import type { UpstreamExchange, UpstreamReply } from '#call';
import { isSessionLost, readRefusal, sessionHeaders } from '../servers/legacy-server.ts';
import { freeEnd, refuseCredentialStatus } from '../request/ending.ts';
import {
  LISTENING,
  type LegacySession,
  type McpEnd,
  type McpResponse,
  type ServerPlace,
} from '../request/mcp-request.ts';
import { ERROR } from '../wire/revisions.ts';
import { LOST, renewOnce, type RenewSession } from '../sessions/legacy-session.ts';

/**
 * Passes messages that a server sends outside of requests to the listening client. This is the attempt of a free
 * call.
 */
export type Listen = (listening: Listening, place: ServerPlace) => AsyncGenerator<Uint8Array, McpEnd, undefined>;

export interface Listening {
  readonly session: LegacySession;
  /** The client's Last-Event-ID header. */
  readonly lastEventId: string | null;
  readonly ended: AbortSignal;
}

interface ListenOptions {
  readonly places: StreamQuota;
  readonly bytesMax: number;
  readonly renew: RenewSession;
  /** For a session in front of a modern server. */
  readonly listenModern: (session: LegacySession, place: ServerPlace) => AsyncGenerator<Uint8Array, McpEnd, undefined>;
}

export function createListen({ places, bytesMax, renew, listenModern }: ListenOptions): Listen {
  return async function* listen({ session, lastEventId, ended }, place) {
    const slot = places.take(session);
    if (slot === null) {
      if (places.draining) return FINISHED;
      const { status, message } = places.refusal();
      return refused(refusalOf(status, message));
    }
    ended.addEventListener('abort', slot.end, { once: true });
    if (ended.aborted) slot.end();
    try {
      if (slot.over.aborted) return FINISHED;
      const watched = {
        ...place,
        send: stoppable(place, slot.over),
        signal: AbortSignal.any([place.signal, slot.over]),
      };
      if (place.facts.era === 'modern') return yield* listenModern(session, watched);
      return yield* listenLegacy(session, lastEventId, watched, { bytesMax, renew });
    } catch (error) {
      if (slot.over.aborted) return FINISHED;
      throw error;
    } finally {
      ended.removeEventListener('abort', slot.end);
      slot.leave();
    }
  };
}

function stoppable({ send }: ServerPlace, signal: AbortSignal): ServerPlace['send'] {
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
  place: ServerPlace,
  { bytesMax, renew }: Pick<ListenOptions, 'bytesMax' | 'renew'>,
): AsyncGenerator<Uint8Array, McpEnd, undefined> {
  if (place.facts.bare) return refused(NO_STREAM);
  const reply = await openStream(session, lastEventId, place, renew);
  if ('text' in reply) return refused(reply);
  yield LISTENING;
  const reader = createEventReader({ bytesMax });
  for (;;) {
    let events: readonly SseEvent[];
    try {
      const chunks = await reply.read();
      if (chunks === null) return FINISHED;
      events = chunks.flatMap((chunk) => reader.push(chunk));
    } catch (error) {
      if (place.signal.aborted && !(error instanceof EventError)) throw error;
      // The client reconnects with the id of the last event that it got.
      return FINISHED;
    }
    for (const event of events) {
      const text = await textForListener(event);
      if (text !== null) yield Buffer.from(text);
    }
  }
}

/**
 * The text of an event that may be passed on, else null: all messages but responses. A server sends a response here
 * only if the client resumes the stream of a request, and the call of that request was not paid. The gateway itself
 * resumes such streams.
 */
async function textForListener({ data, raw, id }: SseEvent): Promise<string | null> {
  if (data === '') return raw;
  const message = await parseGuarded(data, 200);
  if (!message || message.kind === 'response') return null;
  return message.text === data ? raw : eventText(message.text, id);
}

/** The server's stream, or the answer to give instead. */
function openStream(
  session: LegacySession,
  lastEventId: string | null,
  place: ServerPlace,
  renew: RenewSession,
): Promise<UpstreamReply | McpResponse> {
  return renewOnce(session, place, renew, async (mayBeLost) => {
    const headers = {
      accept: 'text/event-stream',
      ...(lastEventId === null ? {} : { 'last-event-id': lastEventId }),
      ...sessionHeaders(session),
    };
    const reply = await place.send({ method: 'GET', path: '', headers, body: null, listens: true }).head;
    if (hasEvents(reply)) return reply;
    const { status } = reply;
    await refuseCredentialStatus(reply);
    const refusal = status >= 400 ? await readRefusal(reply) : null;
    reply.discard();
    // A 404 without an error message means that the server has no GET at this address.
    if (refusal === null || refusal instanceof UpstreamFailure || status === 405) return NO_STREAM;
    if (mayBeLost && isSessionLost(status, refusal)) return LOST;
    // Not 404, because a client takes a 404 as the end of its own session.
    return { status: status === 404 ? 405 : status, text: refusal.text };
  });
}

const FINISHED = freeEnd(null);

const refused = (response: McpResponse): McpEnd => freeEnd(response, `status ${response.status}`);

const refusalOf = (status: number, message: string): McpResponse => ({
  status,
  text: errorText('null', { code: ERROR.server, message }),
});

const NO_STREAM = refusalOf(405, 'This server sends messages only in its replies');
