import { consumerOf } from './ledger.ts';
import type { Committer } from './group-commit.ts';
import { RecentMap } from '#maps';
import type { LedgerOperation } from './ledger-operations.ts';

/** So long after an account was short, its operations go aside. */
const SHORT_MS = 10_000;
/** An account is short if its lease is filled up so often within so long: it has too little money for large leases. */
const FILLS = 4;
const FILLS_MS = 1_000;
const ACCOUNTS = 10_000;
/** Locks whose account is remembered. */
const LOCKS = 50_000;

/** Accounts of consumers that lacked money, or nearly, a short time ago. */
export class ShortAccounts {
  readonly #until = new RecentMap<number>(ACCOUNTS);
  readonly #fills = new RecentMap<{ readonly since: number; readonly count: number }>(ACCOUNTS);

  /** Notes that an operation of the account was refused for lack of money, or of room in a budget. */
  refused(account: string): void {
    this.#until.set(account, performance.now() + SHORT_MS);
  }

  /** Notes that a lease of the account has to be filled up. */
  filled(account: string): void {
    const now = performance.now();
    const known = this.#fills.get(account);
    const { since, count } = known !== undefined && now - known.since < FILLS_MS ? known : { since: now, count: 0 };
    this.#fills.set(account, { since, count: count + 1 });
    if (count + 1 >= FILLS) this.refused(account);
  }

  has(account: string): boolean {
    const until = this.#until.get(account);
    return until !== undefined && performance.now() < until;
  }
}

/**
 * Two committers as one. A refusal for lack of money takes several round trips, because the parts of all gateways are
 * looked at, and the last money of an account is a row for which its gateways queue. So accounts that lack money have
 * groups of their own, and those of other accounts do not wait for them.
 * The two are to each other what gateways are: each may take any operation, whichever made the lock. `aside` connects
 * when it is first used.
 */
export function createLanes(main: Committer, aside: Committer, short: ShortAccounts): Committer {
  const accounts = new RecentMap<string>(LOCKS);

  /** null if it is not known. */
  const accountOf = (operation: LedgerOperation): string | null => {
    const { kind, request } = operation;
    if (kind === 'lock') {
      accounts.set(request.id, request.account);
      return request.account;
    }
    if (kind !== 'transfer')
      return ('account' in request ? request.account : undefined) ?? accounts.get(request.id) ?? null;
    return consumerOf(request.from) ?? consumerOf(request.to);
  };
  return {
    submit(operation) {
      const account = accountOf(operation);
      return (account !== null && short.has(account) ? aside : main).submit(operation);
    },
    account: main.account,
    budget: main.budget,
    async probe() {
      await main.probe();
      await aside.probe();
    },
    async close() {
      await Promise.all([main.close(), aside.close()]);
    },
  };
}
