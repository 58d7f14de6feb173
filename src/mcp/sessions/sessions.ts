import type { RequestMessage } from '#wire';
import type { Offer } from '#gateway';
import type { TaskOwner } from '#tasks';
import { answerInitialize, type InitializeResult } from '../servers/initialize-answer.ts';
import {
  createKeptSessions,
  type KeptSessions,
  type KeptSessionsDeps,
  type KeptUse,
  newSessionId,
} from './kept-sessions.ts';
import { leaveServer } from '../servers/legacy-server.ts';
import { type Opened, refuseTooLong, refuseTooMany } from './opened-session.ts';
import { tellServers, type FreeRequest } from './session-ends.ts';
import { createSessionRenewal, type RenewSession } from './session-renewal.ts';
import { capabilitiesOf, fromState, SESSION_KIND, toState, endOf, type SessionEnd } from './session-state.ts';
import type { LegacySession } from '../request/session.ts';
import { allWithin } from '../request/waiting.ts';
import type { Place } from '../request/mcp-request.ts';

/** The sessions of legacy clients with one service each. */
export interface Sessions extends Pick<KeptSessions<LegacySession>, 'sweep' | 'count' | 'close'> {
  /**
   * Answers an `initialize` message, and opens the session if it is accepted. Runs inside the attempt of a free
   * call. Throws UpstreamFailure.
   */
  open(opening: Opening, place: Pick<Place, 'offer' | 'facts' | 'send'>): Promise<Opened<LegacySession>>;
  /** Takes a session for one request or stream. Null if this owner has no such session with this service. */
  enter(id: string, owner: TaskOwner, service: string): Promise<SessionUse | null>;
  readonly renew: RenewSession;
  /** Whether a session has ended, at this gateway or another. False if the store cannot be read. */
  hasEnded(session: LegacySession): Promise<boolean>;
  /**
   * Ends a session here and at its server; at the server once its running calls are over. False if `enter` would give
   * null.
   */
  end(id: string, owner: TaskOwner, service: string): Promise<boolean>;
}

interface Opening {
  readonly message: RequestMessage;
  readonly owner: TaskOwner;
  readonly service: string;
}

export type SessionUse = KeptUse<LegacySession>;

interface SessionsDeps extends KeptSessionsDeps {
  readonly offerOf: (offerId: string) => Offer | null;
  readonly initializeResult: InitializeResult;
  readonly freeRequest: FreeRequest;
  /** Called with every session that this gateway ends. */
  readonly onEnded?: (end: SessionEnd) => void;
}

/** How long the end of a session waits for its streams to end. Calls may run longer; they end without it. */
const RUNNING_MS = 2_000;
/** The most time for telling servers about sessions that ended together. */
const LEAVING_MS = 30_000;

export function createSessions(deps: SessionsDeps): Sessions {
  const { store, offerOf, freeRequest, now, onEnded, onError } = deps;
  const kept = createKeptSessions<LegacySession>({
    ...deps,
    kind: SESSION_KIND,
    toState,
    fromState: (row) => fromState(row, offerOf),
    changeable: ({ upstreamId, logLevel }) => JSON.stringify([upstreamId, logLevel]),
    onEvicted: (row) => void tellServers([row], freeRequest, offerOf, LEAVING_MS),
    async onSwept(rows) {
      for (const row of rows) onEnded?.(endOf(row, now(), 'expired'));
      await tellServers(rows, freeRequest, offerOf, LEAVING_MS);
    },
  });
  const renew = createSessionRenewal({ store, offerOf, onGone: ({ id }) => kept.drop(id), onError });

  /** Accepts a session with this service whose offer still exists. Takes over the offer as last registered. */
  const fits = (service: string) => (session: LegacySession) => {
    if (session.service !== service) return false;
    const offer = offerOf(session.offer.id);
    if (offer !== null) session.offer = offer;
    return offer !== null;
  };

  return {
    ...kept,
    async open({ message, owner, service }, place) {
      const tooLong = refuseTooLong(message);
      if (tooLong) return tooLong;
      const opened = await kept.open<Opened<LegacySession>>(owner.account, async (keep) => {
        const { accepted, tail } = await answerInitialize(message, place, deps.initializeResult);
        if (accepted === null) return { session: null, tail };
        const session: LegacySession = {
          id: newSessionId(),
          account: owner.account,
          within: owner.within,
          service,
          offer: place.offer,
          era: place.facts.era,
          openedAt: now(),
          revision: accepted.revision,
          initialize: message.text,
          clientCapabilities: capabilitiesOf(message.text),
          upstreamId: accepted.upstreamId,
          logLevel: null,
        };
        try {
          await keep(session);
        } catch (error) {
          await leaveServer(place.send, session).catch(() => {});
          throw error;
        }
        return { session, tail };
      });
      return opened ?? refuseTooMany(message, deps.config.sessionsMax);
    },
    enter: (id, owner, service) => kept.enter(id, owner, fits(service)),
    renew,
    hasEnded: async ({ id: ofSession }) => (await store.get(ofSession).catch(() => undefined)) === null,
    async end(id, owner, service) {
      const ended = await kept.end(id, owner, fits(service));
      if (ended === null) return false;
      const { session, unused } = ended;
      const row = { id, account: owner.account, kind: SESSION_KIND, state: toState(session), expiresAt: 0 };
      onEnded?.(endOf(row, now(), null));
      const told = () => tellServers([row], freeRequest, offerOf, LEAVING_MS);
      // The server would break off the calls that still run, as if it had failed.
      await (unused === null ? told() : allWithin(RUNNING_MS, [unused.then(told)]));
      return true;
    },
  };
}
