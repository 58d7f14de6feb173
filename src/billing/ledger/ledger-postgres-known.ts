import { isPlain, keyOf, type AccountRow, type BudgetRow, type LockRow } from './ledger-changes.ts';
import type { Decision } from './ledger-decide.ts';
import { RecentMap } from '#maps';
import type { LedgerOperation } from './ledger-operations.ts';

const ACCOUNTS = 20_000;
const BUDGETS = 20_000;
const LOCKS = 50_000;

/**
 * Held locks that this gateway made, so that it can resolve them without reading them. Only locks whose columns cannot
 * change while they are held: a lock that lends or is kept must be read. The write itself checks that the lock is still
 * held.
 */
export class OwnLocks {
  readonly #rows = new RecentMap<LockRow>(LOCKS);

  get(id: string): LockRow | undefined {
    return this.#rows.get(id);
  }

  /** Applies a group's changes. Call it after the group is committed. */
  take({ newLocks, resolvedLocks, changedLocks }: Decision): void {
    for (const row of newLocks) if (row.resolvedAt === null && isPlain(row)) this.#rows.set(row.id, row);
    for (const row of resolvedLocks) this.#rows.delete(row.id);
    for (const { row } of changedLocks) this.#rows.delete(row.id);
  }

  /** For use after a failure: the next attempt reads the locks from the database. */
  forget(operations: readonly LedgerOperation[]): void {
    for (const { request } of operations) this.#rows.delete(request.id);
  }
}

const TRUST_MS = 10_000;
const TRUST_MS_MIN = 250;
const TRUST_MS_MAX = 60_000;
/** So that about one group in thirty is wrong where consumers move between gateways. */
const TRUST_GROWTH = 1.02;
/** A row that another gateway has changed within so long after this one is in use by both. */
const SOON_MS = 5_000;
/** So long after that, locks of the account take leases. */
const SHARED_MS = 60_000;

/**
 * Rows as this gateway has last written or read them, and the accounts and budgets that other gateways use as well.
 * Another gateway may have changed a row since, so a group that is decided on known rows is written on condition that
 * they are the same. How long rows are trusted follows from how often they were not.
 */
export class KnownRows {
  readonly #accounts = new RecentMap<CachedRow<AccountRow>>(ACCOUNTS);
  readonly #budgets = new RecentMap<CachedRow<BudgetRow>>(BUDGETS);
  /** Ids of accounts and budgets, with the end of the time in which they count as shared. */
  readonly #shared = new RecentMap<number>(ACCOUNTS);
  #trustMs = TRUST_MS;

  /** The row of an account, or its stripe. null if it must be read. */
  account(id: string, stripe?: number): AccountRow | null {
    return this.#trusted(this.#accounts.get(keyOf(id, stripe)));
  }

  budget(id: string, stripe?: number): BudgetRow | null {
    return this.#trusted(this.#budgets.get(keyOf(id, stripe)));
  }

  #trusted<T extends AccountRow | BudgetRow>(known: CachedRow<T> | undefined): T | null {
    if (known === undefined || performance.now() - known.at >= this.#trustMs) return null;
    return known.row.stripe === undefined && this.isShared(known.row.id) ? null : known.row;
  }

  /** True if other gateways use the account or the budget as well. */
  isShared(id: string): boolean {
    const until = this.#shared.get(id);
    return until !== undefined && performance.now() < until;
  }

  /** Compares rows that were just read with what this gateway knew, to find out which of them others use as well. */
  compare(accounts: Iterable<AccountRow>, budgets: Iterable<BudgetRow>): void {
    for (const row of accounts) {
      const known = this.#accounts.get(keyOf(row.id, row.stripe));
      if (known && (known.row.available !== row.available || known.row.locked !== row.locked)) this.#share(known);
    }
    for (const row of budgets) {
      const known = this.#budgets.get(keyOf(row.id, row.stripe));
      if (known && (known.row.spent !== row.spent || known.row.locked !== row.locked)) this.#share(known);
    }
  }

  #share({ row, at }: CachedRow<AccountRow | BudgetRow>): void {
    if (performance.now() - at < SOON_MS) this.share([row.id]);
  }

  /** Notes that other gateways use these accounts or budgets. */
  share(ids: readonly string[]): void {
    const until = performance.now() + SHARED_MS;
    for (const id of ids) this.#shared.set(id, until);
  }

  /** Forgets stripes of accounts that were asked for and are not among the rows that were read: they were folded. */
  forgetMissing(ids: Iterable<string>, rows: ReadonlyMap<string, AccountRow>): void {
    for (const key of ids) if (!rows.has(key)) this.#accounts.delete(key);
  }

  note(accounts: Iterable<AccountRow>, budgets: Iterable<BudgetRow>): void {
    const at = performance.now();
    for (const row of accounts) this.#accounts.set(keyOf(row.id, row.stripe), { row, at });
    for (const row of budgets) this.#budgets.set(keyOf(row.id, row.stripe), { row, at });
  }

  /** Applies a group's changes, after its commit. `credited`: accounts whose rows it did not see. */
  take({ accounts, budgets }: Decision, credited: ReadonlySet<string>): void {
    this.note(
      accounts.filter(({ id }) => !credited.has(id)),
      budgets,
    );
  }

  /** A group that was decided on known rows was committed. */
  wereRight(): void {
    this.#trustMs = Math.min(this.#trustMs * TRUST_GROWTH, TRUST_MS_MAX);
  }

  /** Some rows of such a group were not the same. */
  wereWrong(): void {
    this.#trustMs = Math.max(this.#trustMs / 2, TRUST_MS_MIN);
  }
}

/** The known rows on which a group was decided. */
export interface AssumedRows {
  readonly accounts: readonly AccountRow[];
  readonly budgets: readonly BudgetRow[];
}

interface CachedRow<T> {
  readonly row: T;
  /** Milliseconds on the monotonic clock. */
  readonly at: number;
}
