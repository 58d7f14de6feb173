import { randomBytes } from 'node:crypto';
import { type Config, errorText, type Offer, type RequestMessage, type SessionStore } from '#gateway';
import { answerInitialize, type InitializeResult } from './initialize-answer.ts';
import { leaveServer } from './legacy-server.ts';
import { ERROR } from './revisions.ts';
import { createSessionCache, type LiveSession } from './session-cache.ts';
import { tellServers, type Reach } from './session-ends.ts';
import { createSessionRenewal, type RenewSession } from './session-renewal.ts';
import { capabilitiesOf, fromState, SESSION_KIND, toState, endOf, type SessionEnd } from './session-state.ts';
import type { LegacySession } from './session.ts';
import type { McpTail, Place } from './turn.ts';

/** The sessions of legacy clients: in memory where they are used, in the database so that any gateway can go on with them. */
export interface Sessions {
  /** Answers an `initialize` message, and opens the session where it is accepted. Run inside the conversation of a free call. Throws UpstreamFailure. */
  open(opening: Opening, place: Pick<Place, 'offer' | 'facts' | 'send'>): Promise<Opened>;
  /** Takes a session for one request or stream; null, whatever the reason, where this account has no such session with this service. */
  enter(id: string, account: string, service: string): Promise<SessionUse | null>;
  readonly renew: RenewSession;
  /** Ends a session, at its server as well. False where `enter` would give null. */
  end(id: string, account: string, service: string): Promise<boolean>;
  /** Ends those whose time is over, of any gateway, at most `limit`; returns how many. Keeps those alive that run something here. Called every few seconds, done or not. */
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

export interface SessionUse {
  readonly session: LegacySession;
  /** Aborts when the session ends. */
  readonly ended: AbortSignal;
  /** The request or stream is over. Called once. */
  leave(): void;
}

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
/** How often the store is told that a session is used. */
const TOUCH_MS = 60_000;
/** For telling servers of what one sweep ends. */
const LEAVING_MS = 30_000;

export function createSessions(deps: SessionsDeps): Sessions {
  const { store, offerOf, reach, now, onError } = deps;
  const { sessionsMax, sessionsInMemoryMax, sessionIdleMs } = deps.config;
  const touchMs = Math.min(TOUCH_MS, sessionIdleMs / 4);
  // The store learns of a use up to `touchMs` late, and of one that goes on with the next sweep only.
  const expiryOf = (usedAt: number) => Math.ceil(usedAt + sessionIdleMs + 2 * touchMs);
  const cache = createSessionCache(sessionsInMemoryMax);
  /** Sessions that are being opened, by account. */
  const opening = new Map<string, number>();
  const arriving = new Map<string, Promise<LiveSession | null>>();
  const renew = createSessionRenewal({ store, offerOf, onGone: ({ id }) => drop(id), onError });

  function drop(id: string): void {
    const found = cache.get(id);
    if (!found) return;
    cache.delete(found);
    found.ended.abort();
  }

  function remember(session: LegacySession, touchedAt: number): LiveSession {
    const live = { session, ended: new AbortController(), uses: 0, lastUsedAt: now(), touchedAt, kept: changeable(session) };
    cache.add(live);
    return live;
  }

  /** Whether one more session may be opened. One that nobody used for a while makes room. */
  async function hasRoom(account: string): Promise<boolean> {
    if ((await store.countOf(account, SESSION_KIND)) + opening.get(account)! <= sessionsMax) return true;
    const oldest = await store.takeOldest(account, SESSION_KIND, expiryOf(now() - 2 * touchMs));
    if (oldest === null) return false;
    drop(oldest.id);
    void tellServers([oldest], reach, offerOf, LEAVING_MS);
    return true;
  }

  /** The session that this id stands for in the store. Looked up once for all that ask at the same time. */
  function takeUp(id: string, account: string): Promise<LiveSession | null> {
    const key = `${id} ${account}`;
    let arrival = arriving.get(key);
    if (!arrival) {
      const find = async () => {
        const row = await store.get(id);
        if (row === null || row.kind !== SESSION_KIND || row.account !== account) return null;
        const session = fromState(row, offerOf);
        // When it was last used elsewhere is not known.
        return session && (cache.get(id) ?? remember(session, 0));
      };
      arrival = find().finally(() => arriving.delete(key));
      arriving.set(key, arrival);
    }
    return arrival;
  }

  /** False where the session has ended elsewhere. A store that is away ends nothing. */
  async function touch(live: LiveSession): Promise<boolean> {
    const at = now();
    if (live.touchedAt + touchMs > at) return true;
    live.touchedAt = at;
    try {
      return await store.touch(live.session.id, expiryOf(at));
    } catch (error) {
      onError(error);
      return true;
    }
  }

  function keep(live: LiveSession): void {
    const changed = changeable(live.session);
    if (changed === live.kept) return;
    live.kept = changed;
    store.change(live.session.id, toState(live.session)).catch(onError);
  }

  async function enter(id: string, account: string, service: string): Promise<SessionUse | null> {
    if (!OWN_ID.test(id)) return null;
    const live = cache.get(id) ?? (await takeUp(id, account));
    if (!live || live.session.account !== account || live.session.service !== service) return null;
    const offer = offerOf(live.session.offer.id);
    if (offer === null) return null;
    live.session.offer = offer;
    const use = (uses: number) => {
      live.uses += uses;
      live.lastUsedAt = now();
      cache.used(live);
    };
    use(1);
    if (!(await touch(live))) {
      use(-1);
      drop(id);
      return null;
    }
    return {
      session: live.session,
      ended: live.ended.signal,
      leave() {
        use(-1);
        keep(live);
      },
    };
  }

  return {
    async open({ message, account, service }, place) {
      const refused = (status: number, code: number, why: string): Opened => {
        return { session: null, tail: { status, text: errorText(message.idText, { code, message: why }) } };
      };
      if (message.text.length > INITIALIZE_CHARS_MAX)
        return refused(400, ERROR.invalidRequest, `initialize is longer than ${INITIALIZE_CHARS_MAX} characters`);
      opening.set(account, (opening.get(account) ?? 0) + 1);
      try {
        if (!(await hasRoom(account)))
          return refused(429, ERROR.server, `This account has ${sessionsMax} sessions, all of them in use: end one with DELETE first`);
        const { accepted, tail } = await answerInitialize(message, place, deps.initializeResult);
        if (accepted === null) return { session: null, tail };
        const session: LegacySession = {
          id: randomBytes(32).toString('base64url'),
          account,
          service,
          offer: place.offer,
          openedAt: now(),
          revision: accepted.revision,
          initialize: message.text,
          clientCapabilities: capabilitiesOf(message.text),
          upstreamId: accepted.upstreamId,
          logLevel: null,
        };
        try {
          await store.put({ id: session.id, account, kind: SESSION_KIND, state: toState(session), expiresAt: expiryOf(now()) });
        } catch (error) {
          await leaveServer(place.send, session).catch(() => {});
          throw error;
        }
        remember(session, now());
        return { session, tail };
      } finally {
        const others = opening.get(account)! - 1;
        if (others === 0) opening.delete(account);
        else opening.set(account, others);
      }
    },

    enter,
    renew,

    async end(id, account, service) {
      const use = await enter(id, account, service);
      if (use === null) return false;
      use.leave();
      const row = { id, account, kind: SESSION_KIND, state: toState(use.session), expiresAt: 0 };
      const ended = await store.delete(id);
      drop(id);
      if (ended) deps.onEnded?.(endOf(row, now(), null));
      if (ended) await tellServers([row], reach, offerOf, LEAVING_MS);
      return ended;
    },

    async sweep(limit = 1_000) {
      for (const live of cache.busy()) {
        live.lastUsedAt = now();
        cache.used(live);
        if (!(await touch(live))) drop(live.session.id);
      }
      cache.forgetUnused(now() - sessionIdleMs);
      const rows = await store.sweep(SESSION_KIND, limit);
      for (const row of rows) {
        drop(row.id);
        deps.onEnded?.(endOf(row, now(), 'expired'));
      }
      await tellServers(rows, reach, offerOf, LEAVING_MS);
      return rows.length;
    },

    get count() {
      return cache.size;
    },
    close: () => cache.clear(),
  };
}

const OWN_ID = /^[\w-]{43}$/;

/** What changes in a session. */
const changeable = ({ upstreamId, logLevel }: LegacySession) => JSON.stringify([upstreamId, logLevel]);
