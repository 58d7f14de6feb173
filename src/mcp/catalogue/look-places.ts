import { Shares } from '#wire';

interface LookPlacesOptions {
  /** Most looks that are not long. They are divided between networks by `Shares`. */
  readonly total: number;
  /** Most looks of one owner, with those that are long. */
  readonly ofOwner: number;
  /** Milliseconds after which a look is long: its place is free for another one. */
  readonly longMs: number;
  /** Most looks that are long. */
  readonly longTotal: number;
  /** Called when a look has become long. */
  readonly onFree: () => void;
}

/** Whose server is looked at. */
export interface Party {
  /** The network that the owner dials from, or the owner if that is not known. */
  readonly network: string;
  readonly owner: string;
}

interface Look extends Party {
  readonly giveUp: () => void;
}

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
  readonly #networks = new Turns();
  readonly #owners = new Turns();

  constructor(options: LookPlacesOptions) {
    this.#options = options;
    this.#short = new Shares(options.total);
  }

  /** Whose turn is next, of the owners that wait in each network; null if none of them may take a place now. */
  next(waiting: ReadonlyMap<string, { keys(): Iterable<string> }>): Party | null {
    let next: Party | null = null;
    let first = Infinity;
    for (const [network, owners] of waiting) {
      const turn = this.#networks.of(network);
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
      const turn = this.#owners.of(owner);
      if (turn >= first || this.#of(owner) >= this.#options.ofOwner) continue;
      next = owner;
      first = turn;
    }
    return next;
  }

  #of = (owner: string) => this.#ofOwners.get(owner) ?? 0;

  /** Takes a place. `giveUp` must end the look. Returns what must be called at its end. */
  take({ network, owner }: Party, giveUp: () => void): () => void {
    const look: Look = { network, owner, giveUp };
    this.#short.take(network);
    this.#ofOwners.set(owner, this.#of(owner) + 1);
    this.#networks.took(network);
    this.#owners.took(owner);
    const timer = setTimeout(() => this.#becomeLong(look), this.#options.longMs).unref();
    return () => {
      clearTimeout(timer);
      if (!this.#long.delete(look)) this.#short.leave(network);
      const left = this.#of(owner) - 1;
      if (left > 0) this.#ofOwners.set(owner, left);
      else this.#ofOwners.delete(owner);
    };
  }

  #becomeLong(look: Look): void {
    this.#short.leave(look.network);
    this.#long.add(look);
    if (this.#long.size > this.#options.longTotal) {
      const ofNetwork = mostOf([...this.#long], ({ network }) => network);
      mostOf(ofNetwork, ({ owner }) => owner)[0]!.giveUp();
    }
    this.#options.onFree();
  }
}

/** The looks of whoever has most of them, in their order. */
function mostOf(looks: readonly Look[], whose: (look: Look) => string): readonly Look[] {
  return [...Map.groupBy(looks, whose).values()].reduce((most, one) => (one.length > most.length ? one : most));
}

/** Most parties whose last turn is known. The others count as those that had none. */
const KNOWN_MAX = 10_000;

/** When each party had its last turn. */
class Turns {
  /** Oldest first. */
  readonly #last = new Map<string, number>();
  #count = 0;

  /** Lower for those whose last turn was earlier; 0 for those that had none. */
  of(party: string): number {
    return this.#last.get(party) ?? 0;
  }

  took(party: string): void {
    this.#last.delete(party);
    this.#last.set(party, ++this.#count);
    if (this.#last.size > KNOWN_MAX) this.#last.delete(this.#last.keys().next().value!);
  }
}
