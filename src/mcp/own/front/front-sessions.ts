import type { Config } from '#config';
import type { SessionStore } from '#tasks';
import { createKeptSessions, type KeptSession, type KeptUse, newSessionId } from '../../sessions/kept-sessions.ts';

/** The session of a legacy client with an agent or a model. */
export interface FrontSession extends KeptSession {
  /** By its full name: `a2a/weather`. */
  readonly service: string;
}

/** The sessions of legacy clients with agents and models. There is nothing in them but whose they are. */
export interface FrontSessions {
  /** null where the account has as many as it may, all of them in use. */
  open(account: string, service: string): Promise<FrontSession | null>;
  /** null, whatever the reason, where this account has no such session with this service. */
  enter(id: string, account: string, service: string): Promise<KeptUse<FrontSession> | null>;
  /** False where `enter` would give null. */
  end(id: string, account: string, service: string): Promise<boolean>;
  /** Ends those whose time is over, of any gateway. Called every few seconds. */
  sweep(): Promise<void>;
  readonly count: number;
  close(): void;
}

export interface FrontSessionsDeps {
  readonly store: SessionStore;
  readonly config: Pick<Config['mcp'], 'sessionsMax' | 'sessionsInMemoryMax' | 'sessionIdleMs'>;
  readonly now: () => number;
  readonly onError: (error: unknown) => void;
}

const SWEEP_MAX = 1_000;

export function createFrontSessions(deps: FrontSessionsDeps): FrontSessions {
  const kept = createKeptSessions<FrontSession>({
    ...deps,
    kind: 'mcp-front',
    toState: ({ service }) => service,
    fromState: ({ id, account, state }) => ({ id, account, service: state }),
  });
  const enter: FrontSessions['enter'] = (id, account, service) =>
    kept.enter(id, account, (session) => session.service === service);
  return {
    open: (account, service) =>
      kept.open(account, async (keep) => {
        const session = { id: newSessionId(), account, service };
        await keep(session);
        return session;
      }),
    enter,
    async end(id, account, service) {
      const use = await enter(id, account, service);
      use?.leave();
      return use !== null && (await kept.remove(id));
    },
    async sweep() {
      await kept.sweep(SWEEP_MAX);
    },
    get count() {
      return kept.count;
    },
    close: kept.close,
  };
}
