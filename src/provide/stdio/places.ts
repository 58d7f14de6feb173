import type { Session } from './session.ts';

/** The places that a tool has for sessions, shared out between its consumers. */
export interface Places {
  /**
   * Ids of the sessions that have to end before one of `consumer` may begin; empty while a place is free. null: no
   * place can be had, as every candidate is in use and no consumer has more than its share.
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
 * The consumer with the most sessions makes room, with the one that it has not used for the longest time. The new
 * session counts for the consumer that asks, so that nobody gets more than the others at their cost. A session in use
 * ends only where its consumer has more than its share.
 */
export function createPlaces(max: number): Places {
  const taken = new Map<string, Taken>();

  function makeRoom(consumer: string): readonly string[] | null {
    if (taken.size < max) return [];
    const byConsumer = Map.groupBy(taken.values(), (one) => one.consumer);
    const own = byConsumer.get(consumer) ?? [];
    // Who has as many as anybody pays for another one himself.
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
