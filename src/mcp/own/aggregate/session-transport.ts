import { randomBytes } from 'node:crypto';
import type { ClientAnswer } from '#http';
import { errorText, parseMessage, type RequestMessage } from '#json-rpc';
import { runUntilAborted } from '#billing/amounts';
import { ownerOf } from '#tasks';
import { createSessionMessages, type SessionMessagesDeps } from '../../http/session-messages.ts';
import {
  type SessionTransport,
  type SessionTransportDeps,
  createSessionTransport,
} from '../../http/session-transport.ts';
import type { ClientRequests } from '../../request/client-requests.ts';
import { capabilitiesOf } from '../../sessions/legacy-session.ts';
import { type Sessions, refuseTooLong, refuseTooMany, openedWith } from '../../sessions/sessions.ts';
import { createParts, type Parts } from './parts.ts';
import { createSessionStreams, type SessionStreamsDeps } from './session-streams.ts';
import {
  createAggregateSessions,
  type AggregateSessions,
  type AggregateSessionsDeps,
  type AggregateSession,
  type AggregateUse,
} from './sessions.ts';
import { createRunningRequests, runCancellable } from '../../request/cancellation.ts';
import type { Recording } from '../../call/replays.ts';
import { agreedRevision, ERROR, levelFault } from '../../wire/revisions.ts';
import { NO_SESSION, noSession, type McpResponse } from '../../request/mcp-request.ts';
import type { RequestContext } from '../../call/stateless.ts';
import { endOwn } from '../own-answer.ts';
import type { AnswerAsk } from '../builtin/answer-ask.ts';
import type { Aggregate } from './aggregate.ts';
import { toPartClient, createTellParts, openParts } from './part-messages.ts';
import { routeRequest } from './route-request.ts';

interface LegacyAggregateDeps
  extends
    Omit<SessionMessagesDeps, 'sessions' | 'clientRequests'>,
    SessionTransportDeps,
    Pick<SessionStreamsDeps, 'catalogue' | 'places' | 'bytesMax'>,
    Pick<AggregateSessionsDeps, 'store' | 'config' | 'now'> {
  readonly aggregate: Aggregate;
  readonly answerAsk: AnswerAsk;
  readonly sessions: Sessions;
  readonly clientRequests: ClientRequests;
}

interface LegacyAggregate {
  readonly transport: SessionTransport;
  readonly sessions: Pick<AggregateSessions, 'count' | 'sweep' | 'close'>;
}

/**
 * Answers clients that have a session with all services. Lists come from the catalogue. Other requests go to the part
 * for the service that they name.
 */
export function createLegacyAggregate(deps: LegacyAggregateDeps): LegacyAggregate {
  const { aggregate, replays, answerAsk } = deps;
  const { sessionsMax } = deps.config;
  const messages = createSessionMessages(deps);
  const change: AggregateSessions['change'] = (session, apply) => sessions.change(session, apply);
  const parts: Parts = createParts({
    ...deps,
    messages,
    change,
    max: sessionsMax,
    onOpened: (all, service) => streams.onOpen(all, service),
  });
  const sessions = createAggregateSessions({ ...deps, endParts: parts.end });
  const streams = createSessionStreams({ ...deps, messages, parts, change });
  const running = createRunningRequests<string | null>(deps.cancels);
  const tellParts = createTellParts({ ...deps, sessions, parts, messages, running });
  const scopeOf = (session: AggregateSession, { caller }: RequestContext) => aggregate.scope(caller, session.selection);

  async function request(
    { session, ended }: AggregateUse,
    message: RequestMessage,
    events: boolean,
    context: RequestContext,
    answer: ClientAnswer,
  ): Promise<void> {
    if (message.method === 'logging/setLevel') return setLevel(session, message, context, answer);
    const route = { message, client: 'legacy', events } as const;
    const one = await routeRequest(aggregate, route, scopeOf(session, context), answer, (ask) => {
      const capabilities = capabilitiesOf(session.initialize);
      return runCancellable(running, session.id, null, message, answer, (cancelled) =>
        runUntilAborted([context.gone, ended, cancelled], (signal) =>
          answerAsk({ ...ask, capabilities }, context, answer, signal),
        ),
      );
    });
    if (one !== null) await toPart(session, one.service, one.message, events, context, answer);
  }

  async function toPart(
    session: AggregateSession,
    service: string,
    message: RequestMessage,
    events: boolean,
    context: RequestContext,
    answer: ClientAnswer,
  ): Promise<void> {
    await runCancellable(running, session.id, service, message, answer, async (cancelled) => {
      const part = await parts.use(session, service, context);
      if (part === NO_SESSION) return answer.end(noSession(message.idText).text, part.status);
      if ('text' in part) return answer.end(refusedBy(service, part, message), 200);
      try {
        if (cancelled.aborted) return answer.close();
        const exposed = toPartClient(aggregate, service);
        const toClient = (text: string) => {
          if (text.includes('/list_changed"')) deps.catalogue.stale(part.session.offer);
          return exposed(text);
        };
        const recording = withEventIds(replays.record(session.id, answer), randomBytes(6).toString('base64url'));
        const { session: partSession, ended } = part;
        const how = { ended, context, events, answer: ownErrors(recording, service, message), toClient };
        await messages.request(partSession, message, how);
      } finally {
        part.leave();
      }
    });
  }

  async function setLevel(
    session: AggregateSession,
    message: RequestMessage,
    context: RequestContext,
    answer: ClientAnswer,
  ): Promise<void> {
    const level = message.params?.['level'];
    const fault = levelFault(level);
    if (fault !== null)
      return endOwn(answer, message, { error: { code: ERROR.invalidParams, message: `level ${fault}` } }, false);
    await parts.setLevel(session, level as string, () => openParts(session, scopeOf(session, context)), context);
    endOwn(answer, message, { result: '{}' }, false);
  }

  const transport = createSessionTransport<AggregateSession>(
    {
      async open(_service, message, { caller, selection }) {
        const tooLong = refuseTooLong(message);
        if (tooLong) return tooLong;
        const revision = agreedRevision(message.params?.['protocolVersion']);
        const opening = {
          ...ownerOf(caller),
          revision,
          initialize: message.text,
          selection,
          logLevel: null,
          parts: new Map(),
        };
        const session = await sessions.add(opening);
        if (session === null) return refuseTooMany(message, sessionsMax);
        return openedWith(session, message, aggregate.initializeResult(revision));
      },
      enter: (_service, id, owner) => sessions.enter(id, owner),
      request,
      async tell({ session }, message, context) {
        await tellParts(session, message, scopeOf(session, context), context);
        return null;
      },
      listen: (use, lastEventId, context, answer) => streams.listen(use, lastEventId !== null, context, answer),
      end: (_service, id, owner) => sessions.end(id, owner),
    },
    deps,
  );
  return { transport, sessions };
}

/** A server's refusal of `initialize`, as the answer to the request for which the part was opened. */
function refusedBy(service: string, { text }: McpResponse, { idText }: RequestMessage): string {
  const message = parseMessage(text);
  const error = message?.kind === 'response' ? message.error : undefined;
  const { code, message: why, ...data } = error ?? { code: ERROR.internal, message: 'no answer' };
  return errorText(idText, { code, message: `${service} refused a session: ${why}`, ...data });
}

/** Replaces a 404, because a client would take it as the end of its own session, but only the part has ended. */
function ownErrors(answer: Recording, service: string, { idText }: RequestMessage): Recording {
  const error = { code: ERROR.server, message: `The session with ${service} was lost. Repeat the request` };
  return {
    isResumable: () => answer.isResumable(),
    events: (bytes) => answer.events(bytes),
    end(text, status, headers, eventId) {
      if (status === NO_SESSION.status) answer.end(errorText(idText, error), 200);
      else answer.end(text, status, headers, eventId);
    },
    body: (asEvent) => answer.body(asEvent),
    close: () => answer.close(),
  };
}

/**
 * An id at the beginning of a line. Lines end only at CR and LF, because other line separators may be part of the data.
 */
const ID = /(^|[\r\n])id:( ?)/g;

/**
 * An answer in which the ids of events begin with `tag`. Several servers may use the same ids, but a client resumes a
 * stream with its last id alone.
 */
function withEventIds(answer: Recording, tag: string): Recording {
  return {
    isResumable: () => answer.isResumable(),
    events(bytes) {
      const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString();
      const tagged = text.includes('id:') ? text.replace(ID, `$1id:$2${tag}.`) : text;
      return answer.events(tagged === text ? bytes : Buffer.from(tagged));
    },
    end: (text, status, headers, eventId) => answer.end(text, status, headers, eventId ? `${tag}.${eventId}` : null),
    body: (asEvent) => answer.body(asEvent),
    close: () => answer.close(),
  };
}
