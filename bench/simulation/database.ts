import { type Clock, type Cores, type Process, Turns } from './engine.ts';
import type { Setting } from './setting.ts';

/** Of a gateway: one for accounts that lack money, and one for all others. */
export const LEDGERS = 2;

/** The row of a consumer's account, or a gateway's stripe of it. Money is counted in calls that it is enough for. */
export interface Row {
  /** Changes whenever the row does. */
  version: number;
  available: number;
  /** The number of its locks that are held. */
  held: number;
  /** A transaction holds the row until its commit is durable. */
  readonly turn: Turns;
}

/** PostgreSQL: rows that transactions hold, processors, and flushes that several commits share. */
export class Database {
  /** Milliseconds that transactions have waited for rows. */
  rowWaitMs = 0;
  flushes = 0;
  readonly setting: Setting;
  readonly clock: Clock;
  readonly cores: Cores;
  readonly #rows = new Map<number, Row>();
  readonly #stripes = new Map<number, Set<number>>();
  readonly #proxy = new Turns(1);
  #written = 0;
  #flushed = 0;
  #isFlushing = false;
  #waiting: (() => void)[] = [];

  constructor(setting: Setting, clock: Clock, cores: Cores) {
    this.setting = setting;
    this.clock = clock;
    this.cores = cores;
  }

  /** The account that has money for one call at once. */
  get broke(): number {
    return this.setting.consumers;
  }

  /** Whether the row is an account, and no stripe of one. */
  isAccount(key: number): boolean {
    return key <= this.broke;
  }

  /** Rows of accounts come first: this is the order in which rows are locked. */
  stripeKey(account: number, ledger: number): number {
    return this.broke + 1 + account * LEDGERS * this.setting.gateways + ledger;
  }

  row(key: number): Row {
    let row = this.#rows.get(key);
    if (!row) {
      const money = key === this.broke ? 1 : this.setting.money;
      row = {
        version: 0,
        available: this.isAccount(key) ? money : 0,
        held: 0,
        turn: new Turns(1),
      };
      this.#rows.set(key, row);
    }
    return row;
  }

  /** The keys of an account's stripes. */
  stripesOf(account: number): Set<number> {
    let keys = this.#stripes.get(account);
    if (!keys) this.#stripes.set(account, (keys = new Set()));
    return keys;
  }

  /** One direction of a round trip. */
  *travel(): Process {
    const { proxyMs } = this.setting.cpu;
    if (proxyMs > 0) {
      yield* this.#proxy.take();
      yield* this.cores.work(proxyMs);
      this.#proxy.giveBack();
    }
    yield this.setting.tripMs / 2;
  }

  *work(ms: number): Process {
    yield* this.cores.work(ms);
  }

  /** Locks rows in the order of their keys. */
  *lock(keys: readonly number[]): Process {
    const asked = this.clock.now;
    for (const key of keys) yield* this.row(key).turn.take();
    this.rowWaitMs += this.clock.now - asked;
  }

  unlock(keys: readonly number[]): void {
    for (const key of keys) this.row(key).turn.giveBack();
  }

  /** Moves a part of what an account has to a stripe that has less than `need`. */
  refill(account: number, stripe: number, need: number): void {
    const [row, own] = [this.row(account), this.row(stripe)];
    const stripes = this.stripesOf(account);
    const part = Math.floor(row.available / (2 + 2 * stripes.size));
    if (own.available >= need || part < 8 * need) return;
    row.available -= part;
    own.available += part;
    row.version += 1;
    own.version += 1;
    stripes.add(stripe);
  }

  /** Takes back what those stripes of an account have that are `locked`. */
  fold(account: number, locked: ReadonlySet<number>): void {
    const row = this.row(account);
    row.version += 1;
    for (const key of locked.intersection(this.stripesOf(account))) {
      const stripe = this.row(key);
      row.available += stripe.available;
      stripe.available = 0;
      stripe.version += 1;
      if (stripe.held === 0) this.stripesOf(account).delete(key);
    }
  }

  /**
   * Waits until what was written is on the disk. The first who waits leads: it sleeps for the time that is set
   * (`commit_delay`), then flushes what all have written by then. Who comes during the flush waits for the next one.
   */
  *flush(): Process {
    const { delayMs, syncMs, isShared } = this.setting.flush;
    if (!isShared) {
      yield syncMs;
      return;
    }
    const own = (this.#written += 1);
    while (this.#flushed < own) {
      if (this.#isFlushing) {
        yield (resume) => void this.#waiting.push(resume);
        continue;
      }
      this.#isFlushing = true;
      yield delayMs;
      const last = this.#written;
      yield syncMs;
      this.#flushed = last;
      this.flushes += 1;
      this.#isFlushing = false;
      for (const resume of this.#waiting.splice(0)) resume();
    }
  }
}
