import { GatewayError } from '#wire';

/** Bounds the bytes of replies that the process keeps until they are whole. */
export interface ReplyMemory {
  /** For one reply to an account. `provider`: whose reply it is; null where it is made of several. */
  open(account: string, provider: string | null): ReplyHold;
}

/** The memory of one reply. */
export interface ReplyHold {
  /**
   * The reply keeps `bytes` now. Null: it may be read on. Else it is not to be read before this settles, which is
   * when there is room for it; rejects with GatewayError `service_unavailable` where no room comes free for long.
   */
  keeps(bytes: number): Promise<void> | null;
  /** The reply is to keep `bytes`, without waiting. False: there is no room, and it keeps what it kept. */
  fits(bytes: number): boolean;
  /** The reply keeps `bytes` now, whether or not there is room: it was paid for. */
  mustKeep(bytes: number): void;
  /** The replies to its account take all that they may. */
  shareIsFull(): boolean;
  /** It keeps nothing any more, and waits for nothing. */
  release(): void;
}

interface ReplyMemoryOptions {
  /** Of all replies together. */
  readonly repliesBytesMax: number;
  /** Of one reply. */
  readonly replyBytesMax: number;
  /** Longest wait for room; default 10 s. */
  readonly waitMs?: number;
}

/** A reply up to this is not counted: nearly all are smaller, and thousands of them are nothing. */
const UNCOUNTED_BYTES = 64 * 1024;
/** One account, or one provider, may take this part of the whole (1 / SHARE). */
const SHARE = 4;
const WAIT_MS = 10_000;

interface Counted {
  used: number;
  readonly max: number;
  /**
   * In the order in which they grew large. The first is never refused room by this count, so that one always comes
   * to its end.
   */
  readonly holds: Set<Hold>;
}

/**
 * One count for all, one for each account and each provider. A reply takes room as it grows, twice as much each
 * time; where any of its counts has none, it waits: its connection is not read meanwhile.
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
            'This gateway holds as many large replies as it has memory for; retry in a moment',
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
