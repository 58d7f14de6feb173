import type { KeptSession } from './kept-sessions.ts';

/** A session in the memory of this gateway. */
export interface LiveSession<S extends KeptSession> {
  readonly session: S;
  /** Aborts when the session ends here. */
  readonly ended: AbortController;
  /** The number of requests and streams that use it. */
  uses: number;
  /** Called when the last use of a session that has ended is over. */
  onUnused: (() => void) | null;
  lastUsedAt: number;
  /** When its expiry was last updated in the store. */
  touchedAt: number;
  /** The changeable part of the session, as the store has it. */
  kept: string;
}

interface SessionCache<S extends KeptSession> {
  readonly size: number;
  get(id: string): LiveSession<S> | undefined;
  add(live: LiveSession<S>): void;
  /** Marks the session as the most recently used one. */
  used(live: LiveSession<S>): void;
  delete(live: LiveSession<S>): void;
  /** Sessions that are in use now. */
  busy(): Iterable<LiveSession<S>>;
  /** Forgets sessions that were last used before `time`. The store still has them. */
  forgetUnused(time: number): void;
  clear(): void;
}

/**
 * A cache of sessions by id, with at most `max` entries. A full cache forgets the least recently used session, but
 * never one that is in use.
 */
export function createSessionCache<S extends KeptSession>(max: number): SessionCache<S> {
  /** In the order of their last use. */
  const byId = new Map<string, LiveSession<S>>();
  const busy = new Set<LiveSession<S>>();

  const remove = (live: LiveSession<S>) => {
    if (byId.get(live.session.id) === live) byId.delete(live.session.id);
    busy.delete(live);
  };

  return {
    get size() {
      return byId.size;
    },
    get: (id) => byId.get(id),
    add(live) {
      if (byId.size >= max)
        for (const oldest of byId.values())
          if (oldest.uses === 0) {
            remove(oldest);
            break;
          }
      byId.set(live.session.id, live);
    },
    used(live) {
      const { id } = live.session;
      if (byId.get(id) !== live) return;
      byId.delete(id);
      byId.set(id, live);
      if (live.uses > 0) busy.add(live);
      else busy.delete(live);
    },
    delete: remove,
    busy: () => busy,
    forgetUnused(time) {
      for (const live of byId.values()) {
        if (live.lastUsedAt > time) return;
        if (live.uses === 0) remove(live);
      }
    },
    clear() {
      byId.clear();
      busy.clear();
    },
  };
}
