import type { Session } from './session.ts';

/** The places for sessions of a tool, shared fairly between its consumers. */
export interface Places {
  /**
   * Returns the ids of the sessions that must end before `consumer` may begin one. Empty if a place is free. null if no
   * place can be freed: every candidate is in use, and no consumer has more than its share.
   */
  makeRoom(consumer: string): readonly string[] | null;
  take(id: string, consumer: string, session: Pick<Session, 'busy' | 'usedAt'>): void;
  leave(id: string): void;
}

interface Taken {
  readonly id: string;
  readonly consumer: string;
  readonly session: Pick<Session, 'busy' | 'usedAt'>;
}

/**
 * The consumer with the most sessions gives up the one that was unused for the longest time. The new session already
 * counts for the consumer that asks, so nobody can get more places than the others. A session in use is ended only if
 * its consumer has more than its share.
 */
export function createPlaces(max: number): Places {
  const taken = new Map<string, Taken>();

  function makeRoom(consumer: string): readonly string[] | null {
    if (taken.size < max) return [];
    const byConsumer = Map.groupBy(taken.values(), (one) => one.consumer);
    const own = byConsumer.get(consumer) ?? [];
    // Only consumers that would still have more sessions than this one after it gets the place. Otherwise this consumer
    // gives up one of its own.
    const larger = [...byConsumer.values()]
      .filter((group) => group.length > own.length + 1)
      .sort((a, b) => b.length - a.length);
    const groups = larger.length > 0 ? larger : own.length > 0 ? [own] : [...byConsumer.values()];
    for (const group of groups) {
      const idle = longestUnused(group.filter(({ session }) => !session.busy()));
      if (idle) return [idle.id];
    }
    const share = Math.ceil(max / (byConsumer.size + (own.length === 0 ? 1 : 0)));
    return larger.length > 0 && larger[0]!.length > share ? [longestUnused(larger[0]!)!.id] : null;
  }

  return {
    makeRoom,
    take: (id, consumer, session) => void taken.set(id, { id, consumer, session }),
    leave: (id) => void taken.delete(id),
  };
}

function longestUnused(sessions: readonly Taken[]): Taken | undefined {
  return sessions.reduce<Taken | undefined>(
    (oldest, one) => (oldest && oldest.session.usedAt() <= one.session.usedAt() ? oldest : one),
    undefined,
  );
}
