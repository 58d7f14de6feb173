import { errorText, type RequestMessage } from '#wire';
import type { Config } from '#config';
import type { Offer } from '#gateway';
import type { SessionStore } from '#tasks';
import { answerInitialize, type InitializeResult } from '../servers/initialize-answer.ts';
import { createKeptSessions, type KeptUse, newSessionId, tooManySessions } from './kept-sessions.ts';
import { leaveServer } from '../servers/legacy-server.ts';
import { ERROR } from '../wire/revisions.ts';
import { tellServers, type Reach } from './session-ends.ts';
import { createSessionRenewal, type RenewSession } from './session-renewal.ts';
import { capabilitiesOf, fromState, SESSION_KIND, toState, endOf, type SessionEnd } from './session-state.ts';
import type { LegacySession } from '../turn/session.ts';
import type { McpTail, Place } from '../turn/turn.ts';

/**
 * The sessions of legacy clients: in memory where they are used, in the database so that any gateway can go on with
 * them.
 */
export interface Sessions {
  /**
   * Answers an `initialize` message, and opens the session where it is accepted. Run inside the conversation of a
   * free call. Throws UpstreamFailure.
   */
  open(opening: Opening, place: Pick<Place, 'offer' | 'facts' | 'send'>): Promise<Opened>;
  /**
   * Takes a session for one request or stream; null, whatever the reason, where this account has no such session
   * with this service.
   */
  enter(id: string, account: string, service: string): Promise<SessionUse | null>;
  readonly renew: RenewSession;
  /** Ends a session, at its server as well. False where `enter` would give null. */
  end(id: string, account: string, service: string): Promise<boolean>;
  /**
   * Ends those whose time is over, of any gateway, at most `limit`; returns how many. Keeps those alive that run
   * something here. Called every few seconds, done or not.
   */
  sweep(limit?: number): Promise<number>;
  /** In the memory of this gateway. */
  readonly count: number;
  /** Forgets everything here; what the database has can be gone on with. */
  close(): void;
}

export interface Opening {
  readonly message: RequestMessage;
  readonly account: string;
  readonly service: string;
}

export interface Opened {
  /** null where `initialize` was refused. */
  readonly session: LegacySession | null;
  readonly tail: McpTail;
}

export type SessionUse = KeptUse<LegacySession>;

export interface SessionsDeps {
  readonly store: SessionStore;
  readonly config: Pick<Config['mcp'], 'sessionsMax' | 'sessionsInMemoryMax' | 'sessionIdleMs'>;
  readonly offerOf: (offerId: string) => Offer | null;
  readonly initializeResult: InitializeResult;
  readonly reach: Reach;
  readonly now: () => number;
  /** Told of every session that this gateway ends. */
  readonly onEnded?: (end: SessionEnd) => void;
  /** Told of what could not be kept. The session goes on. */
  readonly onError: (error: unknown) => void;
}

/** What is kept of a client's `initialize`. */
const INITIALIZE_CHARS_MAX = 64 * 1024;
/** For telling servers of what one sweep ends. */
const LEAVING_MS = 30_000;

export function createSessions(deps: SessionsDeps): Sessions {
  const { store, offerOf, reach, now, onError } = deps;
  const { sessionsMax } = deps.config;
  const kept = createKeptSessions<LegacySession>({
    kind: SESSION_KIND,
    store,
    config: deps.config,
    toState,
    fromState: (row) => fromState(row, offerOf),
    changeable: ({ upstreamId, logLevel }) => JSON.stringify([upstreamId, logLevel]),
    onEvicted: (row) => void tellServers([row], reach, offerOf, LEAVING_MS),
    now,
    onError,
  });
  const renew = createSessionRenewal({ store, offerOf, onGone: ({ id }) => kept.drop(id), onError });

  const enter: Sessions['enter'] = (id, account, service) =>
    kept.enter(id, account, (session) => {
      if (session.service !== service) return false;
      const offer = offerOf(session.offer.id);
      if (offer !== null) session.offer = offer;
      return offer !== null;
    });

  return {
    async open({ message, account, service }, place) {
      const refused = (status: number, code: number, why: string): Opened => {
        return { session: null, tail: { status, text: errorText(message.idText, { code, message: why }) } };
      };
      if (message.text.length > INITIALIZE_CHARS_MAX)
        return refused(400, ERROR.invalidRequest, `initialize is longer than ${INITIALIZE_CHARS_MAX} characters`);
      const opened = await kept.open<Opened>(account, async (keep) => {
        const { accepted, tail } = await answerInitialize(message, place, deps.initializeResult);
        if (accepted === null) return { session: null, tail };
        const session: LegacySession = {
          id: newSessionId(),
          account,
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
      return opened ?? refused(429, ERROR.server, tooManySessions(sessionsMax));
    },

    enter,
    renew,

    async end(id, account, service) {
      const use = await enter(id, account, service);
      if (use === null) return false;
      use.leave();
      const row = { id, account, kind: SESSION_KIND, state: toState(use.session), expiresAt: 0 };
      const ended = await kept.remove(id);
      if (ended) deps.onEnded?.(endOf(row, now(), null));
      if (ended) await tellServers([row], reach, offerOf, LEAVING_MS);
      return ended;
    },

    async sweep(limit = 1_000) {
      const rows = await kept.sweep(limit);
      for (const row of rows) deps.onEnded?.(endOf(row, now(), 'expired'));
      await tellServers(rows, reach, offerOf, LEAVING_MS);
      return rows.length;
    },

    get count() {
      return kept.count;
    },
    close: kept.close,
  };
}
