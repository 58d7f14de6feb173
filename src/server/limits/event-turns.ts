/**
 * Turns of accounts whose events come on open connections, where no request is counted. An account has a steady rate of
 * events and bytes over all its connections, and all accounts together have a small part of each turn of the event
 * loop, which they use one after the other. An event that is not due waits, and its connection is not read meanwhile.
 */
export interface EventTurns {
  /**
   * Counts an event of an account. null if it may be handled now, else a promise that resolves when it may. `onLimited`
   * is called if it waits because the rate of its account is used up. Ask for the next event of a connection after this
   * one was handled. An event whose sender is `gone` waits no longer, and is not to be handled.
   */
  take(account: string, bytes: number, onLimited: () => void, gone?: AbortSignal): Promise<void> | null;
}

interface EventTurnsOptions {
  /** The steady rate of one account. A large event counts by its bytes, a small one as one event. */
  readonly eventsPerSecond: number;
  readonly bytesPerSecond: number;
  /** Milliseconds on a monotonic clock. */
  readonly now?: () => number;
}

/** An idle account may send at once what the rate allows in this time. */
const BURST_MS = 2_000;
/**
 * Work of all accounts in one turn of the event loop, in units: one for an event, and one for each of these bytes. The
 * gateway takes about 0.1 ms for either.
 */
const UNITS_PER_TURN = 24;
const UNIT_BYTES = 8 * 1024;
/** Accounts in memory, before those whose rate is unused are looked for. */
const SWEEP_AT_LEAST = 1_024;

interface WaitingTurn {
  readonly bytes: number;
  readonly onLimited: () => void;
  readonly resolve: () => void;
}

interface Account {
  /** When its rate is unused again, on the clock: the generic cell rate algorithm. */
  freeAt: number;
  readonly waiting: WaitingTurn[];
}

export function createEventTurns(options: EventTurnsOptions): EventTurns {
  return new Turns(options);
}

class Turns implements EventTurns {
  readonly #msOfEvent: number;
  readonly #msOfByte: number;
  readonly #now: () => number;
  readonly #accounts = new Map<string, Account>();
  /** Accounts whose events wait for their turn alone, in the order of their turns. */
  readonly #ready = new Set<Account>();
  /** Accounts whose rate is used up. */
  readonly #limited = new Set<Account>();
  #timer: NodeJS.Timeout | undefined;
  /** Units that are left in this turn of the event loop, and whether the next turn will begin anew. */
  #remaining = UNITS_PER_TURN;
  #isCounting = false;
  #sweepAt = SWEEP_AT_LEAST;

  constructor({ eventsPerSecond, bytesPerSecond, now = () => performance.now() }: EventTurnsOptions) {
    this.#msOfEvent = 1000 / eventsPerSecond;
    this.#msOfByte = 1000 / bytesPerSecond;
    this.#now = now;
  }

  take(name: string, bytes: number, onLimited: () => void, gone?: AbortSignal): Promise<void> | null {
    const account = this.#accounts.get(name) ?? this.#add(name);
    const isLimited = this.#isLimited(account);
    if (!isLimited && this.#remaining > 0 && account.waiting.length === 0 && this.#ready.size === 0) {
      this.#begin(account, bytes);
      return null;
    }
    return new Promise((resolve) => {
      const waiting = { bytes, onLimited, resolve };
      account.waiting.push(waiting);
      gone?.addEventListener('abort', () => this.#giveUp(account, waiting));
      if (isLimited) {
        onLimited();
        this.#limit(account);
      } else if (!this.#limited.has(account)) {
        this.#ready.add(account);
        this.#count();
      }
    });
  }

  #giveUp(account: Account, turn: WaitingTurn): void {
    const at = account.waiting.indexOf(turn);
    if (at === -1) return;
    account.waiting.splice(at, 1);
    if (account.waiting.length === 0) {
      this.#ready.delete(account);
      this.#limited.delete(account);
    }
    turn.resolve();
  }

  #begin(account: Account, bytes: number): void {
    const cost = Math.max(this.#msOfEvent, bytes * this.#msOfByte);
    account.freeAt = Math.max(account.freeAt, this.#now()) + cost;
    this.#remaining -= 1 + bytes / UNIT_BYTES;
    this.#count();
  }

  #isLimited({ freeAt }: Account): boolean {
    return freeAt - this.#now() > BURST_MS;
  }

  /** The account waits until it may use its rate again. */
  #limit(account: Account): void {
    this.#ready.delete(account);
    this.#limited.add(account);
    if (this.#timer === undefined) this.#timer = this.#releaseAt(account.freeAt);
  }

  #releaseAt(freeAt: number): NodeJS.Timeout {
    return setTimeout(() => this.#release(), Math.max(1, freeAt - this.#now() - BURST_MS)).unref();
  }

  #release(): void {
    this.#timer = undefined;
    let next = Infinity;
    for (const account of this.#limited)
      if (this.#isLimited(account)) next = Math.min(next, account.freeAt);
      else {
        this.#limited.delete(account);
        this.#ready.add(account);
      }
    if (next < Infinity) this.#timer = this.#releaseAt(next);
    this.#count();
  }

  #count(): void {
    if (this.#isCounting) return;
    this.#isCounting = true;
    setImmediate(() => {
      this.#isCounting = false;
      this.#remaining = Math.min(UNITS_PER_TURN, this.#remaining + UNITS_PER_TURN);
      this.#giveTurns();
      if (this.#remaining < UNITS_PER_TURN || this.#ready.size > 0) this.#count();
    });
  }

  /** Each account that waits may handle one event before the first of them has its next turn. */
  #giveTurns(): void {
    while (this.#remaining > 0 && this.#ready.size > 0) {
      const account = this.#ready.values().next().value!;
      this.#ready.delete(account);
      const { bytes, resolve } = account.waiting.shift()!;
      this.#begin(account, bytes);
      if (account.waiting.length > 0) {
        if (this.#isLimited(account)) {
          for (const { onLimited } of account.waiting) onLimited();
          this.#limit(account);
        } else this.#ready.add(account);
      }
      resolve();
    }
  }

  #add(name: string): Account {
    if (this.#accounts.size >= this.#sweepAt) {
      for (const [known, { freeAt, waiting }] of this.#accounts)
        if (waiting.length === 0 && freeAt <= this.#now()) this.#accounts.delete(known);
      this.#sweepAt = Math.max(SWEEP_AT_LEAST, 2 * this.#accounts.size);
    }
    const account: Account = { freeAt: 0, waiting: [] };
    this.#accounts.set(name, account);
    return account;
  }
}
