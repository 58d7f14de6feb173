import { errorText } from '#wire';
import { eitherOf } from '#billing/amounts';
import { ownerOf } from '#tasks';
import {
  createSessionTransport,
  type SessionTransport,
  type SessionTransportDeps,
} from '../../http/session-transport.ts';
import type { CancelNotes } from '../../sessions/cancel-notes.ts';
import type { KeptSessions } from '../../sessions/kept-sessions.ts';
import { openedWith, refuseTooMany } from '../../sessions/opened-session.ts';
import { cancelledId, createRunningRequests, runCancellable } from '../../request/running-requests.ts';
import { NO_SESSION } from '../../request/session.ts';
import { quote } from '../../wire/quote.ts';
import { ERROR } from '../../wire/revisions.ts';
import { endOwn } from '../end-own.ts';
import type { AnswerAsk } from './answer-ask.ts';
import type { BuiltinSession } from './builtin-sessions.ts';
import type { PrimitiveServerOf } from './primitive-server.ts';

interface BuiltinTransportDeps extends SessionTransportDeps {
  readonly serverOf: PrimitiveServerOf;
  readonly answerAsk: AnswerAsk;
  readonly sessions: KeptSessions<BuiltinSession>;
  readonly cancels: CancelNotes;
  /** Most sessions of one account. */
  readonly sessionsMax: number;
}

const NO_STREAM = {
  code: ERROR.server,
  message: 'This server sends messages only in its replies, so there is no stream to listen to',
};

/** Answers clients that have a session with an agent or a model. */
export function createBuiltinTransport(deps: BuiltinTransportDeps): SessionTransport {
  const { serverOf, answerAsk, sessions, cancels, sessionsMax } = deps;
  const running = createRunningRequests(cancels);
  const isWith = (service: string | null) => (session: BuiltinSession) => session.service === service;

  return createSessionTransport<BuiltinSession>(
    {
      async open(service, message, { caller }) {
        const server = serverOf(service!, caller);
        if (server === null) return { session: null, tail: NO_SESSION };
        const session = await sessions.add({ ...ownerOf(caller), service: service! });
        if (session === null) return refuseTooMany(message, sessionsMax);
        return openedWith(session, message, server.initializeResult(message.params?.['protocolVersion']));
      },
      enter: (service, id, owner) => sessions.enter(id, owner, isWith(service)),
      async request({ session, ended }, asked, events, context, answer) {
        const { method, params } = asked;
        const server = serverOf(session.service, context.caller);
        if (server === null) return answer.end(NO_SESSION.text, NO_SESSION.status);
        if (method === 'tools/list') return endOwn(answer, asked, { result: server.listResult(false) }, false);
        if (method !== 'tools/call') return endOwn(answer, asked, { error: onlyTools(method) }, false);
        const fault = server.toolFault(asked);
        if (fault) return endOwn(answer, asked, { error: fault }, false);
        const { kind, name, info } = server;
        const ask = {
          kind,
          name,
          arguments: params?.['arguments'],
          message: asked,
          client: 'legacy',
          events,
          info,
        } as const;
        await runCancellable(running, session.id, null, asked, answer, (cancelled) =>
          answerAsk(ask, context, answer, eitherOf(eitherOf(context.gone, ended), cancelled)),
        );
      },
      async tell({ session }, message) {
        if (message.kind !== 'notification' || message.method !== 'notifications/cancelled') return null;
        const id = cancelledId(message);
        const here = running.find(session.id, id);
        if (here) here.cancel();
        else await cancels.note(session, id);
        return null;
      },
      listen: async (_use, _lastEventId, _context, answer) => answer.end(errorText('null', NO_STREAM), 405),
      end: async (service, id, owner) => (await sessions.end(id, owner, isWith(service))) !== null,
    },
    deps,
  );
}

/** The error for a method that an agent or a model does not have. */
export const onlyTools = (method: string) => ({
  code: ERROR.methodNotFound,
  message: `This server has only tools. It does not support the method ${quote(method)}`,
});
