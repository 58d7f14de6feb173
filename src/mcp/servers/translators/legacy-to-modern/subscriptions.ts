import type { LegacySession } from '../../../request/session.ts';

/**
 * The resources that legacy sessions subscribed to. A modern server keeps no such list, because each listen request
 * names all resources.
 */
export interface Subscriptions {
  uris(session: LegacySession): readonly string[];
  /** False if the session has too many. */
  add(session: LegacySession, uri: string): boolean;
  remove(session: LegacySession, uri: string): void;
  /**
   * Resolves when the server uses the present list for the session's stream. Resolves at once without an open stream,
   * and when `signal` aborts.
   */
  settled(session: LegacySession, signal: AbortSignal): Promise<void>;
  /** Follows the list for a stream. A session has one stream, so an earlier watcher's `replaced` is called. */
  watch(session: LegacySession, watcher: Watcher): Watch;
}

interface Watcher {
  changed(): void;
  replaced(): void;
}

interface Watch {
  /** Counts the changes of the list. */
  version(): number;
  /** Notes that the server uses the list of this version. */
  acknowledge(version: number): void;
  end(): void;
}

interface State {
  readonly uris: Set<string>;
  chars: number;
  version: number;
  watcher: Watcher | null;
  acknowledged: number;
  readonly waiting: Set<() => void>;
}

/** Most characters of all URIs of a session, because they go out in one request. */
const CHARS_MAX = 64 * 1024;

export function createSubscriptions(): Subscriptions {
  // Weak, so that the state is freed with its session.
  const states = new WeakMap<LegacySession, State>();

  function stateOf(session: LegacySession): State {
    let state = states.get(session);
    if (!state) {
      state = { uris: new Set(), chars: 0, version: 0, watcher: null, acknowledged: 0, waiting: new Set() };
      states.set(session, state);
    }
    return state;
  }

  const change = (state: State, chars: number) => {
    state.chars += chars;
    state.version++;
    state.watcher?.changed();
  };
  const wake = (state: State) => {
    for (const done of state.waiting) done();
  };

  return {
    uris: (session) => [...stateOf(session).uris],
    add(session, uri) {
      const state = stateOf(session);
      if (state.uris.has(uri)) return true;
      if (state.chars + uri.length > CHARS_MAX) return false;
      state.uris.add(uri);
      change(state, uri.length);
      return true;
    },
    remove(session, uri) {
      const state = stateOf(session);
      if (state.uris.delete(uri)) change(state, -uri.length);
    },
    settled(session, signal) {
      const state = stateOf(session);
      const { version } = state;
      const holds = () => state.watcher === null || state.acknowledged >= version || signal.aborted;
      if (holds()) return Promise.resolve();
      return new Promise((resolve) => {
        const done = () => {
          if (!holds()) return;
          signal.removeEventListener('abort', done);
          state.waiting.delete(done);
          resolve();
        };
        signal.addEventListener('abort', done);
        state.waiting.add(done);
      });
    },
    watch(session, watcher) {
      const state = stateOf(session);
      state.watcher?.replaced();
      state.watcher = watcher;
      state.acknowledged = -1;
      return {
        version: () => state.version,
        acknowledge(version) {
          if (state.watcher !== watcher) return;
          state.acknowledged = version;
          wake(state);
        },
        end() {
          if (state.watcher !== watcher) return;
          state.watcher = null;
          wake(state);
        },
      };
    },
  };
}
