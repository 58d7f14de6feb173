import { resultText } from '#wire';
import type { ClientRequests } from '../turn/client-requests.ts';
import { createLegacyDoor, type LegacyDoorDeps } from './legacy-door.ts';
import type { Replays } from '../call/replays.ts';
import type { LegacyDoor } from './routes.ts';
import { createSessionTalk, type SessionTalkDeps } from './session-talk.ts';
import type { Sessions, SessionUse } from '../sessions/sessions.ts';

export interface SessionDoorDeps extends SessionTalkDeps, LegacyDoorDeps {
  readonly sessions: Sessions;
  readonly replays: Replays;
  readonly clientRequests: Pick<ClientRequests, 'resolve' | 'end'>;
}

/** Answers clients that have a session with one service. */
export function createSessionDoor(deps: SessionDoorDeps): LegacyDoor {
  const { sessions, replays } = deps;
  const talk = createSessionTalk(deps);

  return createLegacyDoor<SessionUse>(
    {
      async open(service, message, knock, answer) {
        const opened = await talk.open(service!, message, knock);
        if (opened === null) return;
        const { session, tail } = opened;
        answer.end(tail.text, tail.status, session === null ? {} : { 'mcp-session-id': session.id });
      },
      enter: (service, id, account) => sessions.enter(id, account, service!),
      async request({ session }, asked, events, knock, answer) {
        if (asked.method === 'ping') return answer.end(resultText(asked.idText, '{}'), 200);
        await talk.request(session, asked, {
          knock,
          events,
          answer: replays.record(session.id, answer),
          toClient: (text) => text,
        });
      },
      tell: ({ session }, message, knock) => talk.tell(session, message, knock),
      async listen({ session, ended }, knock, answer) {
        const last = knock.headers['last-event-id'];
        const lastEventId = typeof last === 'string' ? last : null;
        if (lastEventId !== null && (await replays.resume(session.id, lastEventId, answer))) return;
        const tail = await talk.listen({ session, lastEventId, ended }, knock, (bytes) => answer.events(bytes));
        if (tail === null) answer.close();
        else answer.end(tail.text, tail.status);
      },
      async end(service, id, account) {
        const ended = await sessions.end(id, account, service!);
        if (ended) deps.clientRequests.end(id);
        return ended;
      },
    },
    deps,
  );
}
