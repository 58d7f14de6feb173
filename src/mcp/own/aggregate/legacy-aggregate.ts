import type { StreamQuota } from '#gateway';
import { createSessionMessages, type SessionMessagesDeps } from '../../http/session-messages.ts';
import type { SessionTransport, SessionTransportDeps } from '../../http/session-transport.ts';
import type { ClientRequests } from '../../request/client-requests.ts';
import type { Sessions } from '../../sessions/sessions.ts';
import { createParts, type Parts } from './parts.ts';
import { createAggregateTransport, type AggregateTransportDeps } from './session-transport.ts';
import { createSessionStreams, type SessionStreamsDeps } from './session-streams.ts';
import { createAggregateSessions, type AggregateSessions, type AggregateSessionsDeps } from './sessions.ts';

interface LegacyAggregateDeps
  extends
    Omit<SessionMessagesDeps, 'sessions' | 'clientRequests'>,
    SessionTransportDeps,
    Pick<AggregateTransportDeps, 'aggregate' | 'replays' | 'answerAsk'>,
    Pick<SessionStreamsDeps, 'catalogue' | 'bytesMax'>,
    Pick<AggregateSessionsDeps, 'store' | 'now'> {
  /** The sessions with single services. */
  readonly sessions: Sessions;
  readonly clientRequests: ClientRequests;
  readonly config: AggregateSessionsDeps['config'];
  readonly places: StreamQuota;
}

/** The aggregate for clients with sessions. */
interface LegacyAggregate {
  readonly transport: SessionTransport;
  readonly sessions: Pick<AggregateSessions, 'count' | 'sweep' | 'close'>;
}

export function createLegacyAggregate(deps: LegacyAggregateDeps): LegacyAggregate {
  const { config, onError } = deps;
  const messages = createSessionMessages(deps);
  const change: AggregateSessions['change'] = (session, apply) => sessions.change(session, apply);
  const parts: Parts = createParts({
    ...deps,
    messages,
    change,
    max: config.sessionsMax,
    onOpened: (all, service) => streams.opened(all, service),
  });
  const sessions = createAggregateSessions({ ...deps, endParts: parts.end });
  const streams = createSessionStreams({ ...deps, messages, parts, change, onError });
  const transport = createAggregateTransport({
    ...deps,
    sessions,
    parts,
    streams,
    messages,
    sessionsMax: config.sessionsMax,
  });
  return { transport, sessions };
}
