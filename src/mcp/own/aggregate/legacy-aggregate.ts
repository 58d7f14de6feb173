import type { ListenPlaces } from '#gateway';
import { createSessionTalk, type SessionTalkDeps } from '../../door/session-talk.ts';
import type { LegacyDoor, LegacyDoorDeps } from '../../door/legacy-door.ts';
import type { ClientRequests } from '../../turn/client-requests.ts';
import type { Sessions } from '../../sessions/sessions.ts';
import { createParts, type Parts } from './parts.ts';
import { createAggregateSessionDoor, type AggregateSessionDoorDeps } from './session-door.ts';
import { createSessionStreams, type SessionStreamsDeps } from './session-streams.ts';
import { createAggregateSessions, type AggregateSessions, type AggregateSessionsDeps } from './sessions.ts';

interface LegacyAggregateDeps
  extends
    Omit<SessionTalkDeps, 'sessions' | 'clientRequests'>,
    LegacyDoorDeps,
    Pick<AggregateSessionDoorDeps, 'aggregate' | 'replays' | 'answerAsk'>,
    Pick<SessionStreamsDeps, 'catalogue' | 'bytesMax'>,
    Pick<AggregateSessionsDeps, 'store' | 'now'> {
  /** The sessions with single services. */
  readonly sessions: Sessions;
  readonly clientRequests: ClientRequests;
  readonly config: AggregateSessionsDeps['config'];
  readonly places: ListenPlaces;
}

/** The aggregate for clients with sessions. */
interface LegacyAggregate {
  readonly door: LegacyDoor;
  readonly sessions: Pick<AggregateSessions, 'count' | 'sweep' | 'close'>;
}

export function createLegacyAggregate(deps: LegacyAggregateDeps): LegacyAggregate {
  const { config, onError } = deps;
  const talk = createSessionTalk(deps);
  const change: AggregateSessions['change'] = (session, apply) => sessions.change(session, apply);
  const parts: Parts = createParts({
    ...deps,
    talk,
    change,
    max: config.sessionsMax,
    onOpened: (all, service) => streams.opened(all, service),
  });
  const sessions = createAggregateSessions({ ...deps, endParts: parts.end });
  const streams = createSessionStreams({ ...deps, talk, parts, change, onError });
  const door = createAggregateSessionDoor({ ...deps, sessions, parts, streams, talk, sessionsMax: config.sessionsMax });
  return { door, sessions };
}
