import type { ClientRequests } from '../turn/client-requests.ts';
import type { LegacySession } from '../turn/session.ts';
import type { Sessions } from '../sessions/sessions.ts';
import { createLegacyDoor, type LegacyDoor, type LegacyDoorDeps } from './legacy-door.ts';
import { createSessionTalk, type SessionTalkDeps } from './session-talk.ts';

interface SessionDoorDeps extends SessionTalkDeps, LegacyDoorDeps {
  readonly sessions: Sessions;
  readonly clientRequests: Pick<ClientRequests, 'resolve' | 'end'>;
}

/** Answers clients that have a session with one service. */
export function createSessionDoor(deps: SessionDoorDeps): LegacyDoor {
  const { sessions, replays } = deps;
  const talk = createSessionTalk(deps);

  return createLegacyDoor<LegacySession>(
    {
      open: (service, message, context) => talk.open(service!, message, context),
      enter: (service, id, owner) => sessions.enter(id, owner, service!),
      request: ({ session, ended }, asked, events, context, answer) =>
        talk.request(session, asked, {
          ended,
          context,
          events,
          answer: replays.record(session.id, answer),
          toClient: (text) => text,
        }),
      tell: ({ session }, message, context) => talk.tell(session, message, context),
      async listen({ session, ended }, lastEventId, context, answer) {
        const tail = await talk.listen({ session, lastEventId, ended }, context, (bytes) => answer.events(bytes));
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
