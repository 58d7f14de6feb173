import { LEDGERS, type Database, type Row } from './database.ts';
import { type Clock, type Cores, type Process } from './engine.ts';
import type { Setting } from './setting.ts';

/** As in `src/billing/ledger/group-commit.ts`, `ledger-postgres-known.ts` and `ledger-lanes.ts`. */
const GROUP_MAX = 1024;
const TRUST_MS_MIN = 250;
const TRUST_MS_MAX = 60_000;
const TRUST_GROWTH = 1.02;
const SOON_MS = 5_000;
const SHARED_MS = 60_000;
const SHORT_MS = 10_000;
const FILLS = 4;
const FILLS_MS = 1_000;
/** The part of PostgreSQL's work for a group that comes before its rows are locked. */
const BEFORE_LOCKS = 0.3;

export interface Call {
  readonly account: number;
  /** The row in which the lock is held. */
  heldIn: number | null;
}

export interface Operation {
  readonly kind: 'lock' | 'settle';
  readonly call: Call;
  readonly done: (isGranted: boolean) => void;
}

interface Known {
  readonly version: number;
  readonly available: number;
  readonly at: number;
}

/** The locks of a group that take leases, by account, and the rows that it needs. */
interface Plan {
  readonly leases: ReadonlyMap<number, number>;
  readonly refill: ReadonlySet<number>;
  readonly folded: ReadonlySet<number>;
  readonly keys: readonly number[];
}

/** What a group changes: calls that locks take from each row, less those that settlements give back. */
interface Decision {
  readonly taken: ReadonlyMap<number, number>;
  readonly heldIn: ReadonlyMap<Call, number>;
  /** Accounts of refused locks. */
  readonly short: ReadonlySet<number>;
}

/** How groups were decided. */
export interface GroupCounts {
  groups: number;
  operations: number;
  /** Rows were read first. */
  read: number;
  /** A known row had changed. */
  wrong: number;
}

/** Accounts that lacked money, or nearly, a short time ago. */
class ShortAccounts {
  readonly #clock: Clock;
  readonly #until = new Map<number, number>();
  readonly #fills = new Map<number, { readonly since: number; readonly count: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  refused(account: number): void {
    this.#until.set(account, this.#clock.now + SHORT_MS);
  }

  /** A lease of the account has to be filled up. */
  filled(account: number): void {
    const { now } = this.#clock;
    const known = this.#fills.get(account);
    const { since, count } = known && now - known.since < FILLS_MS ? known : { since: now, count: 0 };
    this.#fills.set(account, { since, count: count + 1 });
    if (count + 1 >= FILLS) this.refused(account);
  }

  has(account: number): boolean {
    return (this.#until.get(account) ?? 0) > this.#clock.now;
  }
}

/** A gateway: a ledger for the accounts that lack money, and one for all others, in one process. */
export class Gateway {
  readonly index: number;
  readonly ledgers: readonly [main: Ledger, aside: Ledger];
  readonly #short: ShortAccounts;

  constructor(index: number, cores: Cores, database: Database) {
    this.index = index;
    this.#short = new ShortAccounts(database.clock);
    const ledgerOf = (side: number) => new Ledger(index * LEDGERS + side, cores, database, this.#short);
    this.ledgers = [ledgerOf(0), ledgerOf(1)];
  }

  submit(operation: Operation): void {
    this.ledgers[this.#short.has(operation.call.account) ? 1 : 0].submit(operation);
  }
}

/** One group at a time, and what arrives meanwhile is the next one. */
class Ledger {
  readonly counts: GroupCounts = { groups: 0, operations: 0, read: 0, wrong: 0 };
  readonly index: number;
  readonly setting: Setting;
  readonly clock: Clock;
  readonly cores: Cores;
  readonly database: Database;
  readonly #known = new Map<number, Known>();
  /** Accounts that other gateways use as well, until when. */
  readonly #shared = new Map<number, number>();
  #trustMs = TRUST_MS_MAX;
  #waiting: Operation[] = [];
  #isRunning = false;
  readonly #short: ShortAccounts;

  constructor(index: number, cores: Cores, database: Database, short: ShortAccounts) {
    this.index = index;
    this.#short = short;
    this.setting = database.setting;
    this.clock = database.clock;
    this.cores = cores;
    this.database = database;
  }

  submit(operation: Operation): void {
    this.#waiting.push(operation);
    if (this.#isRunning) return;
    this.#isRunning = true;
    this.clock.start(this.#groups());
  }

  /** Remembers all accounts as they are now, as if it had written them some time ago. */
  learn(agoMs: number): void {
    for (let key = 0; key < this.setting.consumers; key += 1) this.#note(key, this.database.row(key), -agoMs);
  }

  *#groups(): Process {
    while (this.#waiting.length > 0) {
      const group = this.#waiting.splice(0, GROUP_MAX);
      const { group: each, behind, operation } = this.setting.cpu.gateway;
      const half = (each * (1 - behind) + this.#weight(group) * operation) / 2;
      yield* this.cores.work(half);
      const plan = this.#plan(group, new Set());
      let decision = this.#isKnown(plan) ? yield* this.#assume(group, plan) : null;
      if (!decision) {
        for (const account of plan.refill) this.#short.filled(account);
        decision = yield* this.#read(group, plan);
      }
      for (const account of decision.short) this.#short.refused(account);
      yield* this.cores.work(half);
      this.clock.start(this.cores.work(each * behind));
      this.counts.groups += 1;
      this.counts.operations += group.length;
      for (const { kind, call, done } of group) {
        if (kind === 'lock') call.heldIn = decision.heldIn.get(call) ?? null;
        done(kind === 'settle' || call.heldIn !== null);
      }
    }
    this.#isRunning = false;
  }

  /** The number of operations, where a lock counts less than a settlement. */
  #weight(group: readonly Operation[]): number {
    const { lockPart } = this.setting.cpu;
    return group.reduce((sum, { kind }) => sum + (kind === 'lock' ? lockPart : 2 - lockPart), 0);
  }

  #plan(group: readonly Operation[], folded: ReadonlySet<number>, more: ReadonlySet<number> = new Set()): Plan {
    const { database, clock } = this;
    const leases = new Map<number, number>();
    const keys = new Set<number>();
    for (const { kind, call } of group) {
      const { account, heldIn } = call;
      const isLeased = (this.#shared.get(account) ?? 0) > clock.now && !folded.has(account);
      if (kind === 'settle') keys.add(heldIn!);
      else if (isLeased) leases.set(account, (leases.get(account) ?? 0) + 1);
      else keys.add(account);
    }
    const refill = new Set(more);
    for (const [account, need] of leases) {
      const stripe = database.stripeKey(account, this.index);
      keys.add(stripe);
      if ((this.#trusted(stripe)?.available ?? 0) < need) refill.add(account);
    }
    for (const account of refill) keys.add(account);
    for (const account of folded) for (const key of database.stripesOf(account)) keys.add(key);
    return { leases, refill, folded, keys: [...keys].toSorted((a, b) => a - b) };
  }

  #trusted(key: number): Known | null {
    const known = this.#known.get(key);
    if (!known || this.clock.now - known.at >= this.#trustMs) return null;
    return this.database.isAccount(key) && (this.#shared.get(key) ?? 0) > this.clock.now ? null : known;
  }

  #isKnown({ refill, keys }: Plan): boolean {
    return refill.size === 0 && keys.every((key) => this.#trusted(key) !== null);
  }

  #decide(group: readonly Operation[], { leases, keys }: Plan, available: (key: number) => number): Decision {
    const taken = new Map<number, number>();
    const heldIn = new Map<Call, number>();
    const short = new Set<number>();
    const has = new Set(keys);
    const left = (key: number) => (has.has(key) ? available(key) - (taken.get(key) ?? 0) : 0);
    const add = (key: number, count: number) => taken.set(key, (taken.get(key) ?? 0) + count);
    for (const { kind, call } of group) {
      const stripe = leases.has(call.account) ? this.database.stripeKey(call.account, this.index) : null;
      if (kind === 'settle') add(call.heldIn!, -1);
      else {
        const key = [stripe, call.account].find((some) => some !== null && left(some) >= 1);
        if (key === undefined || key === null) short.add(call.account);
        else {
          add(key, 1);
          heldIn.set(call, key);
        }
      }
    }
    return { taken, heldIn, short };
  }

  /** Decides on known rows, in one round trip. null if one of them has changed, or something would be refused. */
  *#assume(group: readonly Operation[], plan: Plan): Process<Decision | null> {
    const { database, setting } = this;
    const decision = this.#decide(group, plan, (key) => this.#known.get(key)!.available);
    if (decision.short.size > 0) return null;
    const { group: each, behind } = setting.cpu.database;
    const ms = each * (1 - behind);
    yield* database.travel();
    yield* database.work(ms * BEFORE_LOCKS);
    yield* database.lock(plan.keys);
    if (plan.keys.some((key) => this.#known.get(key)!.version !== database.row(key).version)) {
      database.unlock(plan.keys);
      yield* database.travel();
      this.counts.wrong += 1;
      this.#trustMs = Math.max(this.#trustMs / 2, TRUST_MS_MIN);
      return null;
    }
    yield* this.#commit(group, plan, decision, ms * (1 - BEFORE_LOCKS));
    this.#trustMs = Math.min(this.#trustMs * TRUST_GROWTH, TRUST_MS_MAX);
    return decision;
  }

  /** Locks the rows and reads them, decides, and writes: two round trips, and more where money is short. */
  *#read(group: readonly Operation[], plan: Plan): Process<Decision> {
    const { database, setting, clock } = this;
    const { cpu } = setting;
    this.counts.read += 1;
    yield* database.travel();
    yield* database.work(cpu.database.read * BEFORE_LOCKS);
    yield* database.lock(plan.keys);
    for (const key of plan.keys) {
      const known = this.#known.get(key);
      const isOther = known && known.version !== database.row(key).version && clock.now - known.at < SOON_MS;
      const isAccount = database.isAccount(key);
      if (isAccount && (isOther || database.stripesOf(key).size > 0)) this.#shared.set(key, clock.now + SHARED_MS);
    }
    for (const account of plan.folded) database.fold(account, new Set(plan.keys));
    for (const account of plan.refill)
      if (plan.leases.has(account))
        database.refill(account, database.stripeKey(account, this.index), plan.leases.get(account)!);
    yield* database.work(cpu.database.read * (1 - BEFORE_LOCKS));
    yield* database.travel();
    yield* this.cores.work(cpu.gateway.read);
    const decision = this.#decide(group, plan, (key) => database.row(key).available);
    const again = yield* this.#shortOf(plan, decision);
    if (again) {
      for (const key of plan.keys) this.#note(key, database.row(key));
      yield* database.travel();
      database.unlock(plan.keys);
      yield* database.travel();
      return yield* this.#read(group, this.#plan(group, again.folded, again.refill));
    }
    yield* database.travel();
    yield* this.#commit(group, plan, decision, cpu.database.group * (1 - cpu.database.behind));
    return decision;
  }

  /** What must be read or folded before locks are refused; null if they may be. */
  *#shortOf({ refill, folded, keys }: Plan, { short }: Decision): Process<Pick<Plan, 'refill' | 'folded'> | null> {
    const unread = [...short].filter((account) => !keys.includes(account));
    if (unread.length > 0) return { folded, refill: new Set([...refill, ...unread]) };
    const unasked = [...short].filter((account) => !folded.has(account));
    if (unasked.length === 0) return null;
    // One more question: whether stripes have money.
    yield* this.database.travel();
    yield* this.database.travel();
    const hasMoney = (key: number) => this.database.row(key).available > 0;
    if (!unasked.some((account) => [...this.database.stripesOf(account)].some(hasMoney))) return null;
    return { refill, folded: new Set([...folded, ...unasked]) };
  }

  /** Writes and commits. Its rows are locked until it is on the disk. */
  *#commit(group: readonly Operation[], { keys }: Plan, decision: Decision, ms: number): Process {
    const { database, setting } = this;
    yield* database.work(ms + this.#weight(group) * setting.cpu.database.operation);
    for (const [key, count] of decision.taken) {
      const row = database.row(key);
      row.available -= count;
      row.held += count;
      row.version += 1;
    }
    const rows = keys.map((key) => ({ ...database.row(key) }));
    if (setting.locksWaitForDisk || group.some(({ kind }) => kind === 'settle')) yield* database.flush();
    database.unlock(keys);
    const { group: each, behind } = setting.cpu.database;
    this.clock.start(database.work(each * behind));
    yield* database.travel();
    keys.forEach((key, index) => this.#note(key, rows[index]!));
  }

  #note(key: number, { version, available }: Pick<Row, 'version' | 'available'>, at = this.clock.now): void {
    this.#known.set(key, { version, available, at });
  }
}
