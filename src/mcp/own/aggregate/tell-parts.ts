import type { SessionMessages } from '../../http/session-messages.ts';
import type { Told } from '../../http/session-transport.ts';
import type { RequestContext } from '../../call/stateless.ts';
import { cancelledId, type RunningRequests } from '../../request/running-requests.ts';
import type { CancelNotes } from '../../sessions/cancel-notes.ts';
import { toPart } from './part-messages.ts';
import { ofAll, type Parts } from './parts.ts';
import type { Scope } from './scope.ts';
import type { AggregateSession } from './session.ts';
import type { AggregateSessions } from './sessions.ts';

interface TellPartsDeps {
  readonly sessions: Pick<AggregateSessions, 'change'>;
  readonly parts: Pick<Parts, 'known'>;
  readonly messages: Pick<SessionMessages, 'tell'>;
  readonly cancels: CancelNotes;
  readonly onError: (error: unknown) => void;
  /** Running requests of clients, each with its service; null for one that asks an agent or a model. */
  readonly running: RunningRequests<string | null>;
}

/** Passes a notification or a response of a client to the parts that it is for. Drops a message that is for no part. */
type TellParts = (session: AggregateSession, message: Told, scope: Scope, context: RequestContext) => Promise<void>;

export function createTellParts({ sessions, parts, messages, cancels, onError, running }: TellPartsDeps): TellParts {
  /** Sends a message to the part for a service, if that is open. */
  async function tellPart(
    session: AggregateSession,
    service: string,
    message: Told,
    context: RequestContext,
  ): Promise<void> {
    // Another gateway may have opened the part.
    if (!session.parts.has(service)) await sessions.change(session);
    const part = await parts.known(session, service);
    try {
      if (part) await messages.tell(part.session, message, context);
    } finally {
      part?.leave();
    }
  }

  const tellAll = (session: AggregateSession, services: readonly string[], message: Told, context: RequestContext) =>
    ofAll(services, (service) => tellPart(session, service, message, context), onError);

  return async (session, message, scope, context) => {
    if (message.kind === 'response' || message.method === 'notifications/progress') {
      const to = toPart(message);
      if (to && scope.includes(to.service)) await tellPart(session, to.service, to.message, context);
      return;
    }
    const isCancel = message.method === 'notifications/cancelled';
    if (!isCancel && message.method !== 'notifications/roots/list_changed') return;
    const id = isCancel ? cancelledId(message) : undefined;
    const one = isCancel ? running.find(session.id, id) : undefined;
    if (one) {
      one.cancel();
      return tellAll(session, one.of === null ? [] : [one.of], message, context);
    }
    // A request that is unknown here may run at another gateway, and parts may be open there too. One that asks an
    // agent or a model has no part.
    if (isCancel) await cancels.note(session, id);
    await sessions.change(session);
    await tellAll(session, openParts(session, scope), message, context);
  };
}

/** The services of a scope for which a session has parts. */
export const openParts = (session: AggregateSession, scope: Scope): readonly string[] =>
  [...session.parts.keys()].filter((service) => scope.includes(service));
