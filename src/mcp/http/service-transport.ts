import type { ClientRequests } from '../request/client-requests.ts';
import type { LegacySession } from '../request/session.ts';
import type { Sessions } from '../sessions/sessions.ts';
import { createSessionTransport, type SessionTransport, type SessionTransportDeps } from './session-transport.ts';
import { createSessionMessages, type SessionMessagesDeps } from './session-messages.ts';

interface ServiceTransportDeps extends SessionMessagesDeps, SessionTransportDeps {
  readonly sessions: Sessions;
  readonly clientRequests: Pick<ClientRequests, 'resolve' | 'end'>;
}

/** Answers clients that have a session with one service. */
export function createServiceTransport(deps: ServiceTransportDeps): SessionTransport {
  const { sessions, replays } = deps;
  const messages = createSessionMessages(deps);

  return createSessionTransport<LegacySession>(
    {
      open: (service, message, context) => messages.open(service!, message, context),
      enter: (service, id, owner) => sessions.enter(id, owner, service!),
      request: ({ session, ended }, asked, events, context, answer) =>
        messages.request(session, asked, {
          ended,
          context,
          events,
          answer: replays.record(session.id, answer),
          toClient: (text) => text,
        }),
      tell: ({ session }, message, context) => messages.tell(session, message, context),
      async listen({ session, ended }, lastEventId, context, answer) {
        const tail = await messages.listen({ session, lastEventId, ended }, context, (bytes) => answer.events(bytes));
        if (tail === null) answer.close();
        else answer.end(tail.text, tail.status);
      },
      async end(service, id, owner) {
        const ended = await sessions.end(id, owner, service!);
        if (ended) deps.clientRequests.end(id);
        return ended;
      },
    },
    deps,
  );
}
