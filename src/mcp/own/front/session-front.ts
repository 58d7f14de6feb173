import { type Answer, errorText, type RequestMessage, resultText } from '#wire';
import { createCancellableRequests } from '../../turn/cancellable-requests.ts';
import { type KeptUse, tooManySessions } from '../../sessions/kept-sessions.ts';
import { createLegacyDoor, type LegacyDoorDeps } from '../../door/legacy-door.ts';
import { quote } from '../../wire/quote.ts';
import { ERROR } from '../../wire/revisions.ts';
import type { LegacyDoor } from '../../door/routes.ts';
import { NO_SESSION } from '../../turn/session.ts';
import type { Knock } from '../../call/standalone.ts';
import type { AnswerAsk } from './answer-ask.ts';
import type { FrontSession, FrontSessions } from './front-sessions.ts';
import type { PrimitiveServerOf } from './primitive-server.ts';

export interface SessionFrontDeps extends LegacyDoorDeps {
  readonly serverOf: PrimitiveServerOf;
  readonly answerAsk: AnswerAsk;
  readonly sessions: FrontSessions;
  /** Sessions of one account, told where there are too many. */
  readonly sessionsMax: number;
}

const NO_STREAM = {
  code: ERROR.server,
  message: 'Nothing is told here outside of requests: there is no stream to listen on',
};

/** Answers clients that have a session with an agent or a model. */
export function createSessionFront({
  serverOf,
  answerAsk,
  sessions,
  sessionsMax,
  ...deps
}: SessionFrontDeps): LegacyDoor {
  const running = createCancellableRequests<FrontSession, null>();

  async function request(
    { session }: KeptUse<FrontSession>,
    asked: RequestMessage,
    events: boolean,
    knock: Knock,
    answer: Answer,
  ): Promise<void> {
    const { idText, method } = asked;
    const server = serverOf(session.service, knock.caller);
    if (server === null) return answer.end(NO_SESSION.text, NO_SESSION.status);
    const refuse = (code: number, message: string) => answer.end(errorText(idText, { code, message }), 200);
    if (method === 'ping') return answer.end(resultText(idText, '{}'), 200);
    if (method === 'tools/list') return answer.end(resultText(idText, server.listResult(false)), 200);
    if (method !== 'tools/call')
      return refuse(ERROR.methodNotFound, `There are only tools here, and no ${quote(method)}`);
    const fault = server.toolFault(asked);
    if (fault) return refuse(fault.code, fault.message);
    const { kind, name, info } = server;
    const ask = {
      kind,
      name,
      arguments: asked.params?.['arguments'],
      message: asked,
      client: 'legacy',
      events,
      info,
    } as const;
    await running.run(session, null, asked, answer, (cancelled) =>
      answerAsk(ask, knock, answer, AbortSignal.any([knock.gone, cancelled])),
    );
  }

  return createLegacyDoor<KeptUse<FrontSession>>(
    {
      async open(service, message, knock, answer) {
        const server = serverOf(service!, knock.caller);
        if (server === null) return answer.end(NO_SESSION.text, NO_SESSION.status);
        const session = await sessions.open(knock.caller.account, service!);
        if (session === null)
          return answer.end(
            errorText(message.idText, { code: ERROR.server, message: tooManySessions(sessionsMax) }),
            429,
          );
        const result = server.initializeResult(message.params?.['protocolVersion']);
        answer.end(resultText(message.idText, result), 200, { 'mcp-session-id': session.id });
      },
      enter: (service, id, account) => sessions.enter(id, account, service!),
      request,
      tell: async ({ session }, message) => {
        if (message.kind === 'notification' && message.method === 'notifications/cancelled')
          running.find(session, message.params?.['requestId'])?.cancelled.abort();
        return null;
      },
      listen: async (_use, _knock, answer) => answer.end(errorText('null', NO_STREAM), 405),
      end: (service, id, account) => sessions.end(id, account, service!),
    },
    deps,
  );
}
