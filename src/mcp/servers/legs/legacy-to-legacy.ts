import { hash } from 'node:crypto';
import { errorText, type NotificationMessage, type RequestMessage, type ResponseMessage, resultText } from '#wire';
import type { ReplyEnd, UpstreamExchange, UpstreamReply } from '#gateway';
import { toEnd } from '../../turn/ending.ts';
import { failure, isSessionLost, POST_HEADERS, readRefusal, refuseOurs, sessionHeaders } from '../legacy-server.ts';
import { ERROR } from '../../wire/revisions.ts';
import type { RenewSession } from '../../sessions/session-renewal.ts';
import { NO_SESSION, type LegacySession } from '../../turn/session.ts';
import type { Leg, McpTail, Place, Turn } from '../../turn/turn.ts';
import { toEvent } from '../../turn/to-event.ts';
import { readResumed } from './resumed-reply.ts';

export interface LegacyToLegacyOptions {
  readonly replyBytesMax: number;
  readonly renew: RenewSession;
  /** How long a tool whose call was cancelled may still answer, and is paid if it does. */
  readonly cancelGraceMs?: number;
}

export interface LegacyToLegacy {
  /** One request of a client in its session. */
  readonly leg: Leg;
  /**
   * A notification of a client, or its response to a request of the server. Its tail is null where the server took
   * it (202), else the server's refusal. A call that is cancelled ends with it. Throws UpstreamFailure.
   */
  tell(session: LegacySession, message: NotificationMessage | ResponseMessage, place: Place): Promise<ReplyEnd>;
}

const CANCEL_GRACE_MS = 2_000;
/** Calls of one session whose answer never came. */
const UNANSWERED_MAX = 1_000;
const CANCELLED = new Error('the client cancelled the request');

/**
 * A legacy client in front of a legacy server: its session there is one of its own, and messages pass as they are,
 * both ways.
 */
export function createLegacyToLegacy({
  replyBytesMax,
  renew,
  cancelGraceMs = CANCEL_GRACE_MS,
}: LegacyToLegacyOptions): LegacyToLegacy {
  /** What cancels the requests that are on their way, by their ids. */
  const running = new WeakMap<LegacySession, Map<string, () => void>>();

  /**
   * Ids of calls that ended here without the server's answer. It may still come, and servers send it to whoever
   * asks under the same id: the work of a call that was left would be had for the price of another, or for nothing.
   */
  const unanswered = new WeakMap<LegacySession, Set<string>>();

  function leaveUnanswered(session: LegacySession, key: string): void {
    const keys = unanswered.get(session) ?? new Set<string>();
    unanswered.set(session, keys.add(key));
  }

  /** Why a request with this id is not sent; null where nothing is in its way. */
  function inTheWay(session: LegacySession, key: string): string | null {
    if (running.get(session)?.has(key)) return 'A request with this id is on its way';
    const keys = unanswered.get(session);
    if (keys?.has(key))
      return 'A call with this id was made before and has no answer yet: each request of a session has an id of its own';
    return keys && keys.size >= UNANSWERED_MAX
      ? 'Too many calls of this session were left without an answer: open another one'
      : null;
  }

  /**
   * Posts a message into the session, and once more when the server had lost it. The reply, or the answer that the
   * server refused with.
   */
  async function post(
    session: LegacySession,
    text: string,
    place: Place,
    onExchange: (exchange: UpstreamExchange) => void,
  ): Promise<UpstreamReply | McpTail> {
    for (let lost: string | null = null; ;) {
      const { upstreamId } = session;
      const exchange = place.send({
        method: 'POST',
        path: '',
        headers: { ...POST_HEADERS, ...sessionHeaders(session) },
        body: text,
      });
      onExchange(exchange);
      const reply = await exchange.head;
      if (reply.status < 400) return reply;
      refuseOurs(reply);
      const refusal = await readRefusal(reply);
      if (upstreamId !== null && lost === null && isSessionLost(reply.status, refusal)) {
        lost = upstreamId;
        if ((await renew(session, lost, place)) === 'gone') return NO_SESSION;
        continue;
      }
      if (refusal === null) throw failure(`it answered with status ${reply.status}`, reply);
      // To a client, 404 says that its own session is over.
      return { status: reply.status === 404 ? 400 : reply.status, text: refusal.text };
    }
  }

  async function* run(
    turn: Turn,
    place: Place,
    session: LegacySession,
    requests: Map<string, () => void>,
  ): AsyncGenerator<Uint8Array, ReplyEnd, undefined> {
    const { message, events } = turn;
    const key = keyOf(message.id);
    const stop = new AbortController();
    let exchange: UpstreamExchange | null = null;
    let grace: NodeJS.Timeout | undefined;
    let answered = message.method !== 'tools/call';
    const onExchange = (next: UpstreamExchange) => void (exchange = next);
    requests.set(key, () => {
      grace ??= setTimeout(() => {
        stop.abort(CANCELLED);
        exchange?.abort(CANCELLED);
      }, cancelGraceMs);
    });
    try {
      const reply = await post(session, message.text, place, onExchange);
      if (isTail(reply)) {
        answered = true;
        return freeEnd(reply, `status ${reply.status}`);
      }
      const signal = AbortSignal.any([place.signal, stop.signal]);
      for await (const received of readResumed(reply, {
        session,
        send: place.send,
        signal,
        bytesMax: replyBytesMax,
        onExchange,
      })) {
        const { message: answer, eventId } = received;
        // The answer to another request is no business of this stream, where it would not be paid for.
        if (answer?.kind === 'response' && answer.id !== message.id) continue;
        if (answer?.kind === 'response') {
          answered = true;
          reply.discard();
          return toEnd(message, place.offer, answer, { text: turn.toClient(answer.text), status: 200, eventId });
        }
        if (events) yield toEvent(turn, received);
        else if (answer?.kind === 'request') refuse(session, answer, place);
      }
      throw failure('it ended its answer without a response', reply);
    } catch (error) {
      if (error === CANCELLED) return freeEnd(null, 'cancelled');
      throw error;
    } finally {
      clearTimeout(grace);
      if (!answered) leaveUnanswered(session, key);
      requests.delete(key);
    }
  }

  return {
    async *leg(turn, place) {
      const session = turn.session!;
      let requests = running.get(session);
      if (!requests) running.set(session, (requests = new Map<string, () => void>()));
      const why = inTheWay(session, keyOf(turn.message.id));
      if (why !== null) {
        const error = { code: ERROR.invalidRequest, message: why };
        return freeEnd({ status: 400, text: errorText(turn.message.idText, error) }, 'status 400');
      }
      return yield* run(turn, place, session, requests);
    },

    async tell(session, message, place) {
      const cancelled = message.kind === 'notification' && message.method === 'notifications/cancelled';
      if (cancelled) running.get(session)?.get(keyOf(message.params?.['requestId']))?.();
      // Such a server would take it for a call.
      if (place.facts.bare) return freeEnd(null, null);
      const reply = await post(session, message.text, place, () => {});
      if (isTail(reply)) return freeEnd(reply, `status ${reply.status}`);
      reply.discard();
      return freeEnd(null, null);
    },
  };
}

/** 1 and "1" are two ids. A long one is a digest: some are kept for as long as the session. */
function keyOf(id: unknown): string {
  const text = JSON.stringify(id) ?? '';
  return text.length <= 128 ? text : hash('sha256', text);
}

const isTail = (answer: UpstreamReply | McpTail): answer is McpTail => 'text' in answer;

const freeEnd = (tail: McpTail | null, finishReason: string | null): ReplyEnd => ({
  usage: null,
  outcome: 'free',
  estimated: false,
  finishReason,
  flags: [],
  tail,
});

/**
 * A request of the server that its client cannot be asked, as it takes no events. Whether the server hears of it is
 * not waited for.
 */
function refuse(session: LegacySession, { idText, method }: RequestMessage, { send }: Place): void {
  const error = { code: ERROR.methodNotFound, message: 'The client takes no requests in this reply' };
  const body = method === 'ping' ? resultText(idText, '{}') : errorText(idText, error);
  const { head } = send({ method: 'POST', path: '', headers: { ...POST_HEADERS, ...sessionHeaders(session) }, body });
  head.then(
    (reply) => reply.discard(),
    () => {},
  );
}
