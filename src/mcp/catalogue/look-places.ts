import { networkLevels } from '#security';
import { dropOldest, Shares } from '#wire';

interface LookPlacesOptions {
  /** Most looks that are not long. They are divided between networks by `Shares`. */
  readonly total: number;
  /** Most looks of one owner, with those that are long. */
  readonly ofOwner: number;
  /** Milliseconds of waiting for its server after which a look is long: its place is free for another one. */
  readonly longMs: number;
  readonly longTotal: number;
  readonly onFree: () => void;
}

export interface Party {
  /** The network that the owner dials from, or the owner if that is not known. */
  readonly network: string;
  readonly owner: string;
}

export interface LookPlace {
  /**
   * Waits for an answer of the server. Only this time makes a look long: what the gateway itself takes to read an
   * answer is nobody's fault, and more looks would make it longer.
   */
  wait<T>(answer: Promise<T>): Promise<T>;
  /** Must be called at the end of the look. */
  leave(): void;
}

interface Look extends Party {
  readonly giveUp: () => void;
  /** Since when it waits for its server, in milliseconds of a monotonic clock; null while it does not. */
  waitsSince: number | null;
}

/** One wait of so many times `longMs` is needed before a look may be given up. */
const GIVE_UP_TIMES = 5;

/**
 * Places for looks at servers of many owners, which may answer late or never. Networks take turns, and so do the owners
 * of one network, so that no number of wallets or services is served before somebody who has waited longer. A look that
 * takes long leaves its place and goes on. If too many do, one of whoever has most of them is given up.
 */
export class LookPlaces {
  readonly #options: LookPlacesOptions;
  readonly #short: Shares;
  readonly #ofOwners = new Map<string, number>();
  /** Oldest first. */
  readonly #long = new Set<Look>();
  #later: NodeJS.Timeout | undefined;
  readonly #networks = new Turns();
  readonly #owners = new Turns();

  constructor(options: LookPlacesOptions) {
    this.#options = options;
    this.#short = new Shares(options.total, options.total, networkLevels);
  }

  /** Whose turn is next, of the owners that wait in each network; null if none of them may take a place now. */
  next(waiting: ReadonlyMap<string, { keys(): Iterable<string> }>): Party | null {
    let next: Party | null = null;
    let first = Infinity;
    for (const [network, owners] of waiting) {
      const turn = this.#networks.countOf(network);
      if (turn >= first || !this.#short.mayTake(network)) continue;
      const owner = this.#nextOf(owners.keys());
      if (owner === null) continue;
      next = { network, owner };
      first = turn;
    }
    return next;
  }

  #nextOf(owners: Iterable<string>): string | null {
    let next: string | null = null;
    let first = Infinity;
    for (const owner of owners) {
      const turn = this.#owners.countOf(owner);
      if (turn >= first || this.#countOf(owner) >= this.#options.ofOwner) continue;
      next = owner;
      first = turn;
    }
    return next;
  }

  #countOf = (owner: string) => this.#ofOwners.get(owner) ?? 0;

  /** Takes a place. `giveUp` must end the look. */
  take({ network, owner }: Party, giveUp: () => void): LookPlace {
    const search: Look = { network, owner, giveUp, waitsSince: null };
    this.#short.take(network);
    this.#ofOwners.set(owner, this.#countOf(owner) + 1);
    this.#networks.took(network);
    this.#owners.took(owner);
    let remaining = this.#options.longMs;
    let timer: NodeJS.Timeout | undefined;
    let isOver = false;
    return {
      wait: async (answer) => {
        const began = performance.now();
        search.waitsSince = began;
        if (!isOver && !this.#long.has(search)) timer = setTimeout(() => this.#becomeLong(search), remaining).unref();
        try {
          return await answer;
        } finally {
          clearTimeout(timer);
          search.waitsSince = null;
          remaining = Math.max(0, remaining - (performance.now() - began));
        }
      },
      leave: () => {
        // An answer that nobody wants any more may still be waited for.
        isOver = true;
        clearTimeout(timer);
        if (!this.#long.delete(search)) this.#short.leave(network);
        const others = this.#countOf(owner) - 1;
        if (others > 0) this.#ofOwners.set(owner, others);
        else this.#ofOwners.delete(owner);
      },
    };
  }

  #becomeLong(poll: Look): void {
    this.#short.leave(poll.network);
    this.#long.add(poll);
    this.#giveUpSome();
    this.#options.onFree();
  }

  /** A network with no more than its share keeps its looks, however old, while those of a crowd are still too young. */
  #giveUpSome = (): void => {
    clearTimeout(this.#later);
    const { longMs, longTotal } = this.#options;
    const least = performance.now() - GIVE_UP_TIMES * longMs;
    const remaining = new Set(this.#long);
    while (remaining.size > longTotal) {
      const networks = [...Map.groupBy(remaining, ({ network }) => network).values()];
      const late = networks
        .filter((crowd) => crowd.length > longTotal / networks.length)
        .toSorted((one, other) => other.length - one.length)
        .map((crowd) => crowd.filter(({ waitsSince }) => waitsSince !== null && waitsSince <= least))
        .find((crowd) => crowd.length > 0);
      if (late === undefined) break;
      const [oldest] = mostOf(late, ({ owner }) => owner);
      remaining.delete(oldest!);
      oldest!.giveUp();
    }
    if (remaining.size > longTotal) this.#later = setTimeout(this.#giveUpSome, longMs).unref();
  };
}

/** The looks of whoever has most of them, in their order. */
function mostOf(polls: readonly Look[], whose: (poll: Look) => string): readonly Look[] {
  return [...Map.groupBy(polls, whose).values()].reduce((most, one) => (one.length > most.length ? one : most));
}

const KNOWN_MAX = 10_000;

class Turns {
  /** Oldest first. */
  readonly #last = new Map<string, number>();
  #count = 0;

  /** Lower for those whose last turn was earlier; 0 for those that had none. */
  countOf(party: string): number {
    return this.#last.get(party) ?? 0;
  }

  took(party: string): void {
    this.#last.delete(party);
    this.#last.set(party, ++this.#count);
    dropOldest(this.#last, KNOWN_MAX);
  }
}
