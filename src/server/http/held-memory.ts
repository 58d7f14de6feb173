import { Shares } from '#wire';

/**
 * Memory that one process holds for many accounts. Replies and the bodies of requests are counted this way. Each is
 * counted for all together, and for its party of each kind, such as its account and its network. A party gets as many
 * bytes as it leaves free (see Shares), and at most a quarter.
 */
interface HeldMemory<Kind extends string> {
  /** Begins to count one reply or body. A party is null if it is not known, or if there are several. */
  open(parties: Parties<Kind>): MemoryHold<Kind>;
  /** The bytes that are held now. */
  used(): number;
}

type Parties<Kind extends string> = Readonly<Record<Kind, string | null>>;

/** The memory of one reply or body. */
export interface MemoryHold<Kind extends string = string> {
  /**
   * It now holds `bytes` in total. Returns null if reading may go on. Otherwise reading must wait until the promise
   * resolves, when there is room. It rejects with the error of `full` if no room becomes free in time.
   */
  keeps(bytes: number): Promise<void> | null;
  /** Asks for `bytes` in total without waiting. Returns false if there is no room; the count then stays unchanged. */
  fits(bytes: number): boolean;
  /** The same, but returns whose memory has no room: that of its party of a kind, or `all`. null: there is room. */
  lacks(bytes: number): Kind | 'all' | null;
  /** It now holds `bytes` in total, even if there is no room, because it was paid for. */
  mustKeep(bytes: number): void;
  /** It now holds only `bytes` in total. */
  shrinks(bytes: number): void;
  /** True if one of its parties has all that it gets now. */
  shareIsFull(): boolean;
  release(): void;
}

interface HeldMemoryOptions<Kind extends string> {
  readonly bytesMax: number;
  readonly oneBytesMax: number;
  /** A reply or body up to this size is not counted. */
  readonly uncountedBytes: number;
  /** The levels that a party of each kind is in, see Shares; null if it stands alone. They are asked in this order. */
  readonly kinds: Readonly<Record<Kind, ((party: string) => readonly string[]) | null>>;
  readonly waitMs: number;
  /** Makes the error of a wait that was too long. */
  readonly full: () => Error;
  readonly onFreed?: () => void;
}

/** One party may use this part of the total (1 / SHARE), and at least one reply or body of the largest size. */
const SHARE = 4;

export function createHeldMemory<Kind extends string>(options: HeldMemoryOptions<Kind>): HeldMemory<Kind> {
  const pool = new Pool<Kind>(options);
  return {
    open: (parties) => new Hold(pool, parties),
    used: () => pool.used,
  };
}

/** The bytes of one kind's parties. */
interface Count<Kind> {
  readonly kind: Kind;
  readonly shares: Shares;
  /** The holds of each party, in the order in which they grew large. */
  readonly holds: Map<string, Set<unknown>>;
}

class Pool<Kind extends string> {
  readonly options: HeldMemoryOptions<Kind>;
  readonly waiting = new Set<Hold<Kind>>();
  /** In the order in which they grew large. The first one always gets room, so that at least one can finish. */
  readonly holds = new Set<Hold<Kind>>();
  readonly counts: readonly Count<Kind>[];
  readonly #max: number;
  readonly #shareMax: number;
  used = 0;

  constructor(options: HeldMemoryOptions<Kind>) {
    this.options = options;
    this.#max = Math.max(options.bytesMax, options.oneBytesMax);
    this.#shareMax = Math.max(this.#max / SHARE, options.oneBytesMax);
    this.counts = (Object.keys(options.kinds) as Kind[]).map((kind) => ({
      kind,
      shares: new Shares(this.#max, this.#max, options.kinds[kind] ?? undefined),
      holds: new Map(),
    }));
  }

  /** The first count that has no room for `more` bytes of a hold. */
  lacks(hold: Hold<Kind>, more: number): Kind | 'all' | null {
    if (this.holds.values().next().value === hold) return null;
    if (this.used + more > this.#max) return 'all';
    for (const { kind, shares, holds } of this.counts) {
      const party = hold.parties[kind];
      if (party === null) continue;
      // The first one of a party may exceed its quarter where there is room, so that it can finish.
      const isFirst = holds.get(party)?.values().next().value === hold;
      if (!shares.mayTake(party, more) || (!isFirst && shares.amountOf(party) + more > this.#shareMax)) return kind;
    }
    return null;
  }

  shareIsFull(parties: Parties<Kind>): boolean {
    return this.counts.some(({ kind, shares }) => {
      const held = parties[kind] === null ? 0 : shares.amountOf(parties[kind]);
      return held > 0 && (held >= this.#shareMax || held > this.#max - this.used);
    });
  }

  enter(hold: Hold<Kind>): void {
    this.holds.add(hold);
    for (const { kind, holds } of this.counts) {
      const party = hold.parties[kind];
      if (party === null) continue;
      const own = holds.get(party);
      if (own === undefined) holds.set(party, new Set([hold]));
      else own.add(hold);
    }
  }

  leave(hold: Hold<Kind>): void {
    this.holds.delete(hold);
    for (const { kind, holds } of this.counts) {
      const party = hold.parties[kind];
      if (party === null) continue;
      const own = holds.get(party)!;
      own.delete(hold);
      if (own.size === 0) holds.delete(party);
    }
  }

  add(hold: Hold<Kind>, more: number): void {
    this.used += more;
    for (const { kind, shares } of this.counts) {
      const party = hold.parties[kind];
      if (party !== null) shares.take(party, more);
    }
  }

  freed(): void {
    for (const hold of this.waiting) hold.tryAgain();
    this.options.onFreed?.();
  }
}

class Hold<Kind extends string> implements MemoryHold<Kind> {
  readonly parties: Parties<Kind>;
  readonly #pool: Pool<Kind>;
  #entered = false;
  #bytes = 0;
  #requested = 0;
  #over = false;
  #waits: { readonly resolve: () => void; readonly timer: NodeJS.Timeout } | null = null;

  constructor(pool: Pool<Kind>, parties: Parties<Kind>) {
    this.#pool = pool;
    this.parties = parties;
  }

  keeps(bytes: number): Promise<void> | null {
    if (!this.#grows(bytes)) return null;
    const { oneBytesMax, waitMs, full } = this.#pool.options;
    this.#want(Math.max(bytes, Math.min(2 * bytes, oneBytesMax)));
    if (this.#take()) return null;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        reject(full());
        this.#stopWaiting();
      }, waitMs);
      this.#waits = { resolve, timer };
      this.#pool.waiting.add(this);
    });
  }

  fits(bytes: number): boolean {
    return this.lacks(bytes) === null;
  }

  lacks(bytes: number): Kind | 'all' | null {
    if (!this.#grows(bytes)) return null;
    this.#want(bytes);
    const full = this.#pool.lacks(this, bytes - this.#bytes);
    if (full === null) this.#add();
    return full;
  }

  mustKeep(bytes: number): void {
    if (!this.#grows(bytes)) return;
    this.#want(bytes);
    this.#add();
  }

  shrinks(bytes: number): void {
    if (bytes >= this.#bytes || this.#over) return;
    this.#pool.add(this, bytes - this.#bytes);
    this.#bytes = bytes;
    this.#pool.freed();
  }

  shareIsFull(): boolean {
    return this.#pool.shareIsFull(this.parties);
  }

  tryAgain(): void {
    if (this.#take()) this.#stopWaiting();
  }

  release(): void {
    if (this.#over) return;
    this.#over = true;
    this.#stopWaiting();
    if (!this.#entered) return;
    this.#pool.add(this, -this.#bytes);
    this.#pool.leave(this);
    this.#pool.freed();
  }

  #take(): boolean {
    if (this.#pool.lacks(this, this.#requested - this.#bytes) !== null) return false;
    this.#add();
    return true;
  }

  #add(): void {
    this.#pool.add(this, this.#requested - this.#bytes);
    this.#bytes = this.#requested;
  }

  #grows(bytes: number): boolean {
    return bytes > this.#pool.options.uncountedBytes && bytes > this.#bytes && !this.#over;
  }

  #want(bytes: number): void {
    this.#requested = bytes;
    if (this.#entered) return;
    this.#entered = true;
    this.#pool.enter(this);
  }

  #stopWaiting(): void {
    const waits = this.#waits;
    if (waits === null) return;
    this.#waits = null;
    clearTimeout(waits.timer);
    this.#pool.waiting.delete(this);
    waits.resolve();
  }
}
