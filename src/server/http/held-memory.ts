/**
 * Memory that one process holds for many accounts: one count for all, and one for each share, such as that of an
 * account. Each share may use a quarter. Replies and the bodies of requests are counted this way.
 */
interface HeldMemory {
  /** Begins to count one reply or body in these shares. */
  open(...keys: readonly string[]): MemoryHold;
  /** The bytes that are held now. */
  used(): number;
  readonly shareMax: number;
}

/** The memory of one reply or body. */
export interface MemoryHold {
  /**
   * It now holds `bytes` in total. Returns null if reading may go on. Otherwise reading must wait until the promise
   * resolves, when there is room. It rejects with the error of `full` if no room becomes free in time.
   */
  keeps(bytes: number): Promise<void> | null;
  /** Asks for `bytes` in total without waiting. Returns false if there is no room; the count then stays unchanged. */
  fits(bytes: number): boolean;
  /**
   * The same, but returns the key of the first share that has no room, null if all memory together has none, and
   * undefined if there is room.
   */
  lacks(bytes: number): string | null | undefined;
  /** It now holds `bytes` in total, even if there is no room, because it was paid for. */
  mustKeep(bytes: number): void;
  /** It now holds only `bytes` in total. */
  shrinks(bytes: number): void;
  /** True if its first share is used up. */
  shareIsFull(): boolean;
  release(): void;
}

interface HeldMemoryOptions {
  readonly bytesMax: number;
  readonly oneBytesMax: number;
  /** A reply or body up to this size is not counted. */
  readonly uncountedBytes: number;
  readonly waitMs: number;
  /** Makes the error of a wait that was too long. */
  readonly full: () => Error;
  readonly onFreed?: () => void;
}

/** One share may use this part of the total (1 / SHARE), and at least one reply or body of the largest size. */
const SHARE = 4;

interface MemoryShare {
  /** Whose share it is; null for the count of all. */
  readonly key: string | null;
  used: number;
  readonly max: number;
  /**
   * Those that hold memory, in the order in which they grew large. The first one always gets room from this count, so
   * that at least one can finish.
   */
  readonly holds: Set<Hold>;
}

export function createHeldMemory({
  bytesMax,
  oneBytesMax,
  uncountedBytes,
  waitMs,
  full,
  onFreed = () => {},
}: HeldMemoryOptions): HeldMemory {
  const all: MemoryShare = { key: null, used: 0, max: Math.max(bytesMax, oneBytesMax), holds: new Set() };
  const shareMax = Math.max(all.max / SHARE, oneBytesMax);
  const shares = new Map<string, MemoryShare>();
  const waiting = new Set<Hold>();

  const shareOf = (key: string): MemoryShare => {
    let share = shares.get(key);
    if (!share) shares.set(key, (share = { key, used: 0, max: shareMax, holds: new Set() }));
    return share;
  };
  const pool: Pool = {
    oneBytesMax,
    uncountedBytes,
    waitMs,
    full,
    waiting,
    countsOf: (keys) => [...keys.map(shareOf), all],
    shareIsFull: (key) => (shares.get(key)?.used ?? 0) >= shareMax,
    released(keys) {
      for (const key of keys) if (shares.get(key)?.holds.size === 0) shares.delete(key);
      for (const hold of waiting) hold.tryAgain();
      onFreed();
    },
  };
  return {
    open: (...keys) => new Hold(pool, keys),
    shareMax,
    used: () => all.used,
  };
}

interface Pool {
  readonly oneBytesMax: number;
  readonly uncountedBytes: number;
  readonly waitMs: number;
  readonly full: () => Error;
  readonly waiting: Set<Hold>;
  countsOf(keys: readonly string[]): readonly MemoryShare[];
  shareIsFull(key: string): boolean;
  released(keys: readonly string[]): void;
}

class Hold implements MemoryHold {
  readonly #pool: Pool;
  readonly #keys: readonly string[];
  #counts: readonly MemoryShare[] | null = null;
  #bytes = 0;
  #requested = 0;
  #over = false;
  #waits: { readonly resolve: () => void; readonly timer: NodeJS.Timeout } | null = null;

  constructor(pool: Pool, keys: readonly string[]) {
    this.#pool = pool;
    this.#keys = keys;
  }

  keeps(bytes: number): Promise<void> | null {
    if (!this.#grows(bytes)) return null;
    this.#want(Math.max(bytes, Math.min(2 * bytes, this.#pool.oneBytesMax)));
    if (this.#take()) return null;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        reject(this.#pool.full());
        this.#stopWaiting();
      }, this.#pool.waitMs);
      this.#waits = { resolve, timer };
      this.#pool.waiting.add(this);
    });
  }

  fits(bytes: number): boolean {
    return this.lacks(bytes) === undefined;
  }

  lacks(bytes: number): string | null | undefined {
    if (!this.#grows(bytes)) return undefined;
    this.#want(bytes);
    const full = this.#full();
    if (full !== undefined) return full.key;
    this.#add();
    return undefined;
  }

  mustKeep(bytes: number): void {
    if (!this.#grows(bytes)) return;
    this.#want(bytes);
    this.#add();
  }

  shrinks(bytes: number): void {
    if (bytes >= this.#bytes || this.#over) return;
    for (const count of this.#counts!) count.used -= this.#bytes - bytes;
    this.#bytes = bytes;
    this.#pool.released(this.#keys);
  }

  shareIsFull(): boolean {
    return this.#pool.shareIsFull(this.#keys[0]!);
  }

  tryAgain(): void {
    if (this.#take()) this.#stopWaiting();
  }

  release(): void {
    if (this.#over) return;
    this.#over = true;
    this.#stopWaiting();
    if (this.#counts === null) return;
    for (const count of this.#counts) {
      count.used -= this.#bytes;
      count.holds.delete(this);
    }
    this.#pool.released(this.#keys);
  }

  #take(): boolean {
    if (this.#full() !== undefined) return false;
    this.#add();
    return true;
  }

  /** The first count that has no room for the wanted bytes. */
  #full(): MemoryShare | undefined {
    const more = this.#requested - this.#bytes;
    return this.#counts!.find(({ used, max, holds }) => used + more > max && holds.values().next().value !== this);
  }

  #add(): void {
    for (const count of this.#counts!) count.used += this.#requested - this.#bytes;
    this.#bytes = this.#requested;
  }

  #grows(bytes: number): boolean {
    return bytes > this.#pool.uncountedBytes && bytes > this.#bytes && !this.#over;
  }

  #want(bytes: number): void {
    this.#requested = bytes;
    if (this.#counts !== null) return;
    this.#counts = this.#pool.countsOf(this.#keys);
    for (const { holds } of this.#counts) holds.add(this);
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
