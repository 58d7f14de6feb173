import { GatewayError } from '#wire';

/** Limits the memory for replies that the process holds until they are complete. */
export interface ReplyMemory {
  /**
   * Begins to count one reply to an account. `provider`: the provider of the reply; null if the reply comes from
   * several.
   */
  open(account: string, provider: string | null): ReplyHold;
}

/** The memory of one reply. */
export interface ReplyHold {
  /**
   * The reply now holds `bytes` in total. Returns null if reading may go on. Otherwise reading must wait until the
   * promise resolves, when there is room. It rejects with GatewayError `service_unavailable` if no room becomes free in
   * time.
   */
  keeps(bytes: number): Promise<void> | null;
  /** Asks for `bytes` in total without waiting. Returns false if there is no room; the count then stays unchanged. */
  fits(bytes: number): boolean;
  /** The reply now holds `bytes` in total, even if there is no room, because it was paid for. */
  mustKeep(bytes: number): void;
  /** True if the replies to its account use their whole share. */
  shareIsFull(): boolean;
  /** Gives all memory back and stops waiting. */
  release(): void;
}

interface ReplyMemoryOptions {
  /** Limit for all replies together. */
  readonly repliesBytesMax: number;
  /** Limit for one reply. */
  readonly replyBytesMax: number;
  /** Longest wait for room; default 10 s. */
  readonly waitMs?: number;
}

/**
 * Replies up to this size are not counted. Nearly all replies are smaller, and even thousands of them need little
 * memory.
 */
const UNCOUNTED_BYTES = 64 * 1024;
/** One account or one provider may use this part of the total (1 / SHARE). */
const SHARE = 4;
const WAIT_MS = 10_000;

interface Counted {
  used: number;
  readonly max: number;
  /**
   * The counted replies, in the order in which they grew large. The first one always gets room from this count, so that
   * at least one reply can finish.
   */
  readonly holds: Set<Hold>;
}

/**
 * There is one count for all replies, one for each account and one for each provider. A growing reply reserves up to
 * twice its size each time. If one of its counts has no room, the reply waits, and its connection is not read
 * meanwhile.
 */
export function createReplyMemory({
  repliesBytesMax,
  replyBytesMax,
  waitMs = WAIT_MS,
}: ReplyMemoryOptions): ReplyMemory {
  const all: Counted = { used: 0, max: Math.max(repliesBytesMax, replyBytesMax), holds: new Set() };
  const shareMax = Math.max(all.max / SHARE, replyBytesMax);
  const shares = new Map<string, Counted>();
  const waiting = new Set<Hold>();

  const shareOf = (key: string): Counted => {
    let share = shares.get(key);
    if (!share) shares.set(key, (share = { used: 0, max: shareMax, holds: new Set() }));
    return share;
  };
  const pool: Pool = {
    replyBytesMax,
    waitMs,
    waiting,
    countsOf: (account, provider) => [all, ...keysOf(account, provider).map(shareOf)],
    shareIsFull: (account) => (shares.get(accountKey(account))?.used ?? 0) >= shareMax,
    released(account, provider) {
      for (const key of keysOf(account, provider)) if (shares.get(key)?.holds.size === 0) shares.delete(key);
      for (const hold of waiting) hold.tryAgain();
    },
  };
  return { open: (account, provider) => new Hold(pool, account, provider) };
}

const accountKey = (account: string) => `account ${account}`;
const keysOf = (account: string, provider: string | null) =>
  provider === null ? [accountKey(account)] : [accountKey(account), `provider ${provider}`];

interface Pool {
  readonly replyBytesMax: number;
  readonly waitMs: number;
  readonly waiting: Set<Hold>;
  countsOf(account: string, provider: string | null): readonly Counted[];
  shareIsFull(account: string): boolean;
  released(account: string, provider: string | null): void;
}

class Hold implements ReplyHold {
  readonly #pool: Pool;
  readonly #account: string;
  readonly #provider: string | null;
  #counts: readonly Counted[] | null = null;
  #taken = 0;
  #wanted = 0;
  #over = false;
  #waits: { readonly resolve: () => void; readonly timer: NodeJS.Timeout } | null = null;

  constructor(pool: Pool, account: string, provider: string | null) {
    this.#pool = pool;
    this.#account = account;
    this.#provider = provider;
  }

  keeps(bytes: number): Promise<void> | null {
    if (!this.#grows(bytes)) return null;
    this.#want(Math.max(bytes, Math.min(2 * bytes, this.#pool.replyBytesMax)));
    if (this.#take()) return null;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        reject(
          new GatewayError(
            'service_unavailable',
            'The memory of this gateway for large replies is full: retry in a moment',
            {
              retryAfterS: 2,
            },
          ),
        );
        this.#stopWaiting();
      }, this.#pool.waitMs);
      this.#waits = { resolve, timer };
      this.#pool.waiting.add(this);
    });
  }

  fits(bytes: number): boolean {
    if (!this.#grows(bytes)) return true;
    this.#want(bytes);
    return this.#take();
  }

  mustKeep(bytes: number): void {
    if (!this.#grows(bytes)) return;
    this.#want(bytes);
    this.#add();
  }

  shareIsFull(): boolean {
    return this.#pool.shareIsFull(this.#account);
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
      count.used -= this.#taken;
      count.holds.delete(this);
    }
    this.#pool.released(this.#account, this.#provider);
  }

  #take(): boolean {
    const more = this.#wanted - this.#taken;
    for (const { used, max, holds } of this.#counts!)
      if (used + more > max && holds.values().next().value !== this) return false;
    this.#add();
    return true;
  }

  #add(): void {
    for (const count of this.#counts!) count.used += this.#wanted - this.#taken;
    this.#taken = this.#wanted;
  }

  #grows(bytes: number): boolean {
    return bytes > UNCOUNTED_BYTES && bytes > this.#taken && !this.#over;
  }

  #want(bytes: number): void {
    this.#wanted = bytes;
    if (this.#counts !== null) return;
    this.#counts = this.#pool.countsOf(this.#account, this.#provider);
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
