import { randomBytes } from 'node:crypto';
import {
  type Answer,
  errorText,
  GatewayError,
  type JsonRpcError,
  type NotificationMessage,
  parseMessage,
  type RequestMessage,
  type ResponseMessage,
  resultText,
} from '#wire';
import type { ToolCatalogue } from '../../catalogue/tool-catalogue.ts';
import { tooManySessions } from '../../sessions/kept-sessions.ts';
import { createCancellableRequests } from '../../turn/cancellable-requests.ts';
import { createLegacyDoor, type LegacyDoorDeps } from '../../door/legacy-door.ts';
import type { Recording, Replays } from '../../call/replays.ts';
import { ERROR, isLegacyRevision, LEGACY, LOG_LEVELS } from '../../wire/revisions.ts';
import type { LegacyDoor } from '../../door/routes.ts';
import { NO_SESSION } from '../../turn/session.ts';
import type { SessionTalk } from '../../door/session-talk.ts';
import type { Knock } from '../../call/standalone.ts';
import type { McpTail } from '../../turn/turn.ts';
import type { AnswerAsk } from '../front/answer-ask.ts';
import type { Aggregate } from './aggregate.ts';
import { withEventIds } from './event-ids.ts';
import { toPart, toPartClient } from './part-messages.ts';
import { ofAll, type Parts } from './parts.ts';
import type { AggregateSession } from './session.ts';
import type { SessionStreams } from './session-streams.ts';
import type { AggregateSessions, AggregateUse } from './sessions.ts';
import { endOwn, isList } from './standalone-door.ts';

export interface AggregateSessionDoorDeps extends LegacyDoorDeps {
  readonly aggregate: Aggregate;
  readonly catalogue: Pick<ToolCatalogue, 'stale'>;
  readonly sessions: AggregateSessions;
  readonly parts: Parts;
  readonly streams: Pick<SessionStreams, 'listen'>;
  readonly talk: Pick<SessionTalk, 'request' | 'tell'>;
  readonly replays: Replays;
  readonly answerAsk: AnswerAsk;
  /** Sessions of one account, told where there are too many. */
  readonly sessionsMax: number;
}

/** What is kept of a client's `initialize`. */
const INITIALIZE_CHARS_MAX = 64 * 1024;

/**
 * Answers clients that have a session with all services at once: lists from what is known, everything else in the
 * part that it is for.
 */
export function createAggregateSessionDoor(deps: AggregateSessionDoorDeps): LegacyDoor {
  const { aggregate, sessions, parts, talk, replays, onError } = deps;
  /** By the service that each is for; null for one that asks an agent or a model. */
  const running = createCancellableRequests<AggregateSession, string | null>();

  const scopeOf = (session: AggregateSession, { caller }: Knock) => aggregate.scope(caller, session.selection);
  const openIn = (session: AggregateSession, knock: Knock) => {
    const { includes } = scopeOf(session, knock);
    return [...session.parts.keys()].filter(includes);
  };

  async function open(message: RequestMessage, { caller, selection }: Knock, answer: Answer): Promise<void> {
    const refuse = (status: number, code: number, why: string) =>
      answer.end(errorText(message.idText, { code, message: why }), status);
    if (message.text.length > INITIALIZE_CHARS_MAX)
      return refuse(400, ERROR.invalidRequest, `initialize is longer than ${INITIALIZE_CHARS_MAX} characters`);
    const asked = message.params?.['protocolVersion'];
    const revision = typeof asked === 'string' && isLegacyRevision(asked) ? asked : LEGACY[0];
    const session = await sessions.open({ account: caller.account, revision, initialize: message.text, selection });
    if (session === null) return refuse(429, ERROR.server, tooManySessions(deps.sessionsMax));
    answer.end(resultText(message.idText, aggregate.initializeResult(revision)), 200, { 'mcp-session-id': session.id });
  }

  async function request(
    { session }: AggregateUse,
    asked: RequestMessage,
    events: boolean,
    knock: Knock,
    answer: Answer,
  ): Promise<void> {
    const { method, idText, params } = asked;
    const scope = scopeOf(session, knock);
    if (method === 'ping') return answer.end(resultText(idText, '{}'), 200);
    if (method === 'logging/setLevel') return setLevel(session, asked, knock, answer);
    if (isList(method)) return endOwn(answer, asked, aggregate.list(method, params?.['cursor'], scope, false), false);
    const resolved = aggregate.resolve(asked, scope);
    if (resolved.kind === 'refused')
      return endOwn(answer, asked, { error: legacyError(method, resolved.error) }, false);
    if (resolved.kind === 'find')
      return endOwn(answer, asked, { result: aggregate.find(resolved.arguments, scope, false) }, false);
    if (resolved.kind === 'ask') {
      const { of: kind, arguments: given } = resolved;
      const ask = {
        kind,
        name: null,
        arguments: given,
        message: asked,
        client: 'legacy',
        events,
        info: aggregate.info,
        selects: scope.selects,
      } as const;
      return running.run(session, null, asked, answer, (cancelled) =>
        deps.answerAsk(ask, knock, answer, AbortSignal.any([knock.gone, cancelled])),
      );
    }
    const renamed = parseMessage(resolved.text);
    if (renamed?.kind !== 'request') throw new GatewayError('internal', 'Internal error');
    await toOne(session, resolved.service, renamed, events, knock, answer);
  }

  async function toOne(
    session: AggregateSession,
    service: string,
    asked: RequestMessage,
    events: boolean,
    knock: Knock,
    answer: Answer,
  ): Promise<void> {
    await running.run(session, service, asked, answer, async (cancelled) => {
      const part = await parts.use(session, service, knock);
      if (part === NO_SESSION) return answer.end(part.text, part.status);
      if ('text' in part) return answer.end(refusedBy(service, part, asked), 200);
      try {
        if (cancelled.aborted) return answer.close();
        const exposed = toPartClient(aggregate, service);
        const toClient = (text: string) => {
          if (text.includes('/list_changed"')) deps.catalogue.stale(part.session.offer);
          return exposed(text);
        };
        const recording = withEventIds(replays.record(session.id, answer), randomBytes(6).toString('base64url'));
        await talk.request(part.session, asked, {
          knock,
          events,
          answer: ownErrors(recording, service, asked),
          toClient,
        });
      } finally {
        part.leave();
      }
    });
  }

  async function setLevel(
    session: AggregateSession,
    asked: RequestMessage,
    knock: Knock,
    answer: Answer,
  ): Promise<void> {
    const level = asked.params?.['level'];
    if (!(LOG_LEVELS as readonly unknown[]).includes(level)) {
      const message = `level must be one of ${LOG_LEVELS.join(', ')}`;
      return answer.end(errorText(asked.idText, { code: ERROR.invalidParams, message }), 200);
    }
    await parts.setLevel(session, level as string, () => openIn(session, knock), knock);
    answer.end(resultText(asked.idText, '{}'), 200);
  }

  /** Says something in the part for a service, if one is open. */
  async function tellPart(
    session: AggregateSession,
    service: string,
    message: NotificationMessage | ResponseMessage,
    knock: Knock,
  ): Promise<void> {
    // Another gateway may have opened it.
    if (!session.parts.has(service)) await sessions.change(session);
    const part = await parts.known(session, service);
    try {
      if (part) await talk.tell(part.session, message, knock);
    } finally {
      part?.leave();
    }
  }

  /** Always taken: what is for no part is dropped. */
  async function tell(
    { session }: AggregateUse,
    message: NotificationMessage | ResponseMessage,
    knock: Knock,
  ): Promise<null> {
    if (message.kind === 'response' || message.method === 'notifications/progress') {
      const to = toPart(message);
      if (to && scopeOf(session, knock).includes(to.service)) await tellPart(session, to.service, to.message, knock);
    } else if (message.method === 'notifications/cancelled' || message.method === 'notifications/roots/list_changed') {
      const one =
        message.method === 'notifications/cancelled' ? running.find(session, message.params?.['requestId']) : undefined;
      one?.cancelled.abort();
      // A request that is unknown here may run at another gateway, and so may parts.
      if (!one) await sessions.change(session);
      const services = one ? (one.of === null ? [] : [one.of]) : openIn(session, knock);
      await ofAll(services, (service) => tellPart(session, service, message, knock), onError);
    }
    return null;
  }

  return createLegacyDoor<AggregateUse>(
    {
      open: (_service, message, knock, answer) => open(message, knock, answer),
      enter: (_service, id, account) => sessions.enter(id, account),
      request,
      tell,
      async listen(use, knock, answer) {
        const last = knock.headers['last-event-id'];
        if (typeof last === 'string' && (await replays.resume(use.session.id, last, answer))) return;
        await deps.streams.listen(use, knock, answer);
      },
      end: (_service, id, account) => sessions.end(id, account),
    },
    deps,
  );
}

/** Legacy clients know a resource that is not there by a code of its own. */
function legacyError(method: string, error: JsonRpcError): JsonRpcError {
  return method.startsWith('resources/') && error.code === ERROR.invalidParams
    ? { ...error, code: ERROR.resourceNotFound }
    : error;
}

/** What a server answered to `initialize`, as the answer to the request that it was opened for. */
function refusedBy(service: string, { text }: McpTail, { idText }: RequestMessage): string {
  const message = parseMessage(text);
  const {
    code,
    message: why,
    data,
  } = (message?.kind === 'response' && message.error) || { code: ERROR.internal, message: 'no answer' };
  return errorText(idText, {
    code,
    message: `${service} refused a session: ${why}`,
    ...(data === undefined ? {} : { data }),
  });
}

/** To a client, 404 says that its own session is over, and only the part is. */
function ownErrors(answer: Recording, service: string, { idText }: RequestMessage): Recording {
  return {
    get resumable() {
      return answer.resumable;
    },
    events: (bytes) => answer.events(bytes),
    end(text, status, headers, eventId) {
      if (status !== NO_SESSION.status) return answer.end(text, status, headers, eventId);
      answer.end(
        errorText(idText, { code: ERROR.server, message: `The session with ${service} was lost: ask again` }),
        200,
      );
    },
    close: () => answer.close(),
  };
}
