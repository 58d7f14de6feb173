import { hash } from 'node:crypto';
import { eitherOf } from '#billing/amounts';
import {
  errorText,
  exactId,
  type NotificationMessage,
  type RequestId,
  type RequestMessage,
  type ResponseMessage,
  resultText,
  answerTo,
} from '#json-rpc';
import { replaceAt, splice, UpstreamFailure } from '#wire';
import type { UpstreamExchange, UpstreamReply } from '#call';
import { freeEnd, toServerEnd, refuseCredentialStatus, withoutResponse } from '../request/ending.ts';
import {
  isUnaskedProgress,
  toEvent,
  type LegacySession,
  type EraTranslator,
  type McpEnd,
  type McpResponse,
  type ServerPlace,
} from '../request/mcp-request.ts';
import {
  cancelledId,
  createRunningRequests,
  endsCancelled,
  ID_IN_USE,
  type CancelNotes,
} from '../request/cancellation.ts';
import { ERROR } from '../wire/revisions.ts';
import { LOST, renewOnce, type RenewSession } from '../sessions/legacy-session.ts';
import { isSessionLost, readRefusal, sessionHeaders, POST_HEADERS } from '../servers/legacy-server.ts';
import { readResumed } from '../servers/resumable-stream.ts';

export interface LegacyToLegacyOptions {
  readonly replyBytesMax: number;
  readonly renew: RenewSession;
  /** Whether the client has ended the session meanwhile, perhaps at another gateway. Default: never. */
  readonly hasEnded?: (session: LegacySession) => Promise<boolean>;
  /** Notes of cancellations that reach another gateway than the one at which the call runs. Default: none. */
  readonly cancels?: CancelNotes;
  /** How long a tool may still answer after its call was cancelled. Such an answer is paid. Default: 2 s. */
  readonly cancelGraceMs?: number;
}

export interface LegacyToLegacy {
  readonly translator: EraTranslator;
  /**
   * Passes on a notification of a client, or its response to a request of the server. The result is null if the server
   * accepted it (202), else the server's refusal. `notifications/cancelled` also cancels the call here. Throws
   * UpstreamFailure.
   */
  tell(session: LegacySession, message: NotificationMessage | ResponseMessage, place: ServerPlace): Promise<McpEnd>;
}

/** A server is told of a cancellation at once and stops, so what still comes was on its way. */
export const CANCEL_GRACE_MS = 2_000;

/**
 * A legacy client in front of a legacy server. The client has its own session there, and messages pass unchanged both
 * ways, except for ids above 2^53.
 */
export function createLegacyToLegacy({
  replyBytesMax,
  renew,
  hasEnded = async () => false,
  cancels,
  cancelGraceMs = CANCEL_GRACE_MS,
}: LegacyToLegacyOptions): LegacyToLegacy {
  const requests = createRunningRequests(cancels);
  const unanswered = createUnansweredCalls();

  return {
    async *translator(mcpRequest, place) {
      const { message, events } = mcpRequest;
      const session = mcpRequest.session!;
      const id = exactId(message);
      const why = requests.find(session.id, id) ? ID_IN_USE.message : unanswered.fault(session, id);
      if (why !== null)
        return refused({ status: 200, text: errorText(message.idText, { code: ERROR.invalidRequest, message: why }) });

      const running = requests.start(session.id, id, null, cancelGraceMs);
      const { cancelled } = running;
      let exchange: UpstreamExchange | null = null;
      const onExchange = (next: UpstreamExchange) => void (exchange = next);
      cancelled.addEventListener('abort', () => exchange?.abort(cancelled.reason as Error), { once: true });
      let answered = message.method !== 'tools/call';
      try {
        const reply = await post(session, withExactId(message, id), place, renew, onExchange);
        if (isRefusal(reply)) {
          answered = true;
          return refused(reply);
        }
        const signal = eitherOf(place.signal, cancelled);
        const reading = { session, send: place.send, signal, bytesMax: replyBytesMax, onExchange };
        let unread = false;
        for await (const received of readResumed(reply, reading)) {
          const { message: answer, eventId } = received;
          if (answer === null && received.unread) {
            unread = true;
            continue;
          }
          if (answer?.kind === 'response') {
            const own = answerTo(message, answer);
            // A response to another request would get through this stream without payment.
            if (own === null) continue;
            answered = true;
            reply.discard();
            const toAnswer = ({ text }: ResponseMessage) => ({ text: mcpRequest.toClient(text), status: 200, eventId });
            return toServerEnd(mcpRequest, place, own, toAnswer);
          }
          if (isUnaskedProgress(mcpRequest, answer)) continue;
          if (events) yield toEvent(mcpRequest, received);
          else if (answer?.kind === 'request') refuseRequest(session, answer, place);
        }
        throw withoutResponse(reply.status, unread);
      } catch (error) {
        if (endsCancelled(running, error)) return freeEnd(null, 'cancelled');
        // A server breaks off the calls of a session that has ended, which is no failure of it.
        if (error instanceof UpstreamFailure && !error.tooLarge && (await hasEnded(session)))
          return freeEnd(null, 'session ended');
        if (error instanceof UpstreamFailure && !error.tooLarge && (await running.isNoted()))
          return freeEnd(null, 'cancelled');
        throw error;
      } finally {
        running.end();
        if (!answered) unanswered.add(session, id);
      }
    },

    async tell(session, message, place) {
      let { text } = message;
      if (message.kind === 'notification' && message.method === 'notifications/cancelled') {
        const id = cancelledId(message);
        const here = requests.find(session.id, id);
        if (here) here.cancel();
        // Before the server is told, because it may break off the call at once.
        else await cancels?.note(session, id);
        if (id !== message.params?.['requestId']) text = replaceAt(text, ['params', 'requestId'], JSON.stringify(id));
      }
      // A server without a handshake would take the message for a call.
      if (place.facts.bare) return freeEnd(null);
      const reply = await post(session, text, place, renew, () => {});
      if (isRefusal(reply)) return refused(reply);
      reply.discard();
      return freeEnd(null);
    },
  };
}

/** The request with its exact id, because a server may round a large number, and then answer two requests as one. */
function withExactId({ id: written, text, members }: RequestMessage, id: RequestId): string {
  return id === written ? text : splice(text, [{ ...members.get('id')!, text: JSON.stringify(id) }]);
}

/**
 * Posts a message in the session. If the server has lost the session, renews it and posts once more. Resolves to the
 * reply, or to the server's refusal. Throws UpstreamFailure.
 */
function post(
  session: LegacySession,
  text: string,
  place: ServerPlace,
  renew: RenewSession,
  onExchange: (exchange: UpstreamExchange) => void,
): Promise<UpstreamReply | McpResponse> {
  return renewOnce(session, place, renew, async (mayBeLost) => {
    const headers = { ...POST_HEADERS, ...sessionHeaders(session) };
    const exchange = place.send({ method: 'POST', path: '', headers, body: text });
    onExchange(exchange);
    const reply = await exchange.head;
    const { status } = reply;
    if (status < 400) return reply;
    await refuseCredentialStatus(reply);
    const answer = await readRefusal(reply);
    if (mayBeLost && isSessionLost(status, answer)) return LOST;
    if (answer instanceof UpstreamFailure) throw answer;
    // Not 404, because a client takes a 404 as the end of its own session.
    return { status: status === 404 ? 400 : status, text: answer.text };
  });
}

const isRefusal = (answer: UpstreamReply | McpResponse): answer is McpResponse => 'text' in answer;

const refused = (refusal: McpResponse): McpEnd => freeEnd(refusal, `status ${refusal.status}`);

/** Refuses a server's request to a client that accepts no events. Does not wait for the server's reply. */
function refuseRequest(session: LegacySession, { idText, method }: RequestMessage, { send }: ServerPlace): void {
  const error = {
    code: ERROR.methodNotFound,
    message: 'The client does not accept an event stream, so the server cannot ask it',
  };
  const body = method === 'ping' ? resultText(idText, '{}') : errorText(idText, error);
  const { head } = send({ method: 'POST', path: '', headers: { ...POST_HEADERS, ...sessionHeaders(session) }, body });
  head.then(
    (reply) => reply.discard(),
    () => {},
  );
}

/**
 * Ids of calls that ended here without the server's answer. The answer may still come, and servers send it to any later
 * request with the same id. A client would then get the work of the first call for the price of another, or for
 * nothing.
 */
interface UnansweredCalls {
  add(session: LegacySession, id: RequestId): void;
  /** Says why a request with this id must not be sent; null if it may be sent. */
  fault(session: LegacySession, id: RequestId): string | null;
}

/** Most unanswered calls of one session that are kept one by one. */
const UNANSWERED_MAX = 1_000;
/** Fewer ids of one counter are not worth a floor. */
const COUNTED_MIN = 10;

/** An id that a client has counted: a number, or a string that ends with one. */
interface CountedId {
  /** The text before the number. The ids 1 and "1" are different. */
  readonly prefix: string;
  readonly count: number;
}

interface OfSession {
  /** Each kept id; null if it is not counted. */
  readonly ids: Map<string, CountedId | null>;
  /** By prefix. Every id up to the floor counts as unanswered. Clients count upwards, so they never use one again. */
  readonly floors: Map<string, number>;
}

export function createUnansweredCalls(): UnansweredCalls {
  const unanswered = new WeakMap<LegacySession, OfSession>();
  return {
    add(session, id) {
      let ids = unanswered.get(session);
      if (!ids) unanswered.set(session, (ids = { ids: new Map(), floors: new Map() }));
      ids.ids.set(keyOf(id), countedOf(id));
      if (isFull(ids)) raiseFloor(ids);
    },
    fault(session, id) {
      const ids = unanswered.get(session);
      if (!ids) return null;
      if (ids.ids.has(keyOf(id)))
        return 'A call with this id has no answer yet. Use a different id for each request of a session';
      const counted = countedOf(id);
      const floor = counted === null ? undefined : ids.floors.get(counted.prefix);
      if (floor !== undefined && counted!.count <= floor)
        return `A call with this id may have no answer yet. Use an id above ${floor} for each further request of the session`;
      return isFull(ids) ? 'Too many calls of this session have no answer. Open another session' : null;
    },
  };
}

const isFull = ({ ids, floors }: OfSession): boolean => ids.size + floors.size >= UNANSWERED_MAX;

/** Replaces the lower half of the counter with the most ids by a floor, if any counter has enough. */
function raiseFloor({ ids: requests, floors }: OfSession): void {
  const counters = Map.groupBy(
    [...requests].flatMap(([key, counted]) => (counted === null ? [] : [{ key, ...counted }])),
    ({ prefix }) => prefix,
  );
  const [prefix, ids] = [...counters].reduce((most, one) => (one[1].length > most[1].length ? one : most), ['', []]);
  if (ids.length < COUNTED_MIN) return;
  const lower = ids.toSorted((a, b) => a.count - b.count).slice(0, Math.ceil(ids.length / 2));
  for (const { key } of lower) requests.delete(key);
  floors.set(prefix, Math.max(lower.at(-1)!.count, floors.get(prefix) ?? -Infinity));
}

/** A long id is stored as a digest, because it is kept as long as the session. */
function keyOf(id: RequestId): string {
  const text = JSON.stringify(id);
  return text.length <= ID_CHARS_MAX ? text : hash('sha256', text);
}

const ID_CHARS_MAX = 128;
/** So many digits are an exact number. */
const COUNT_AT_END = /^(.*?)(\d{1,15})$/s;

function countedOf(id: RequestId): CountedId | null {
  if (typeof id === 'number') return { prefix: '', count: id };
  const [, prefix, digits] = (id.length <= ID_CHARS_MAX && COUNT_AT_END.exec(id)) || [];
  return digits === undefined ? null : { prefix: `"${prefix}`, count: Number(digits) };
}
