import { escrowOf, treasuryOf, type Ledger } from '#billing';
import type { LockRequest } from '../../src/billing/ledger/ledger.ts';

export interface Race {
  /** Number of locks that were granted, refused, or failed with an error. */
  readonly granted: number;
  readonly refused: number;
  readonly failed: number;
  readonly available: bigint;
  readonly locked: bigint;
}

export interface RaceOptions {
  /** Number of concurrent operations on each ledger. */
  readonly width: number;
  readonly attempts: number;
  readonly affordable: number;
}

const AMOUNT = 10n;

/**
 * Makes `attempts` locks of 10 micro-USD from all ledgers at once, on an account that can pay for exactly `affordable`
 * of them.
 */
export async function raceLocks(ledgers: readonly Ledger[], options: RaceOptions): Promise<Race> {
  const account = await newRacer(ledgers, AMOUNT * BigInt(options.affordable));
  return race(ledgers, options, account, {});
}

/**
 * The same on an account that all ledgers use, so that each has a lease of it. Three locks of 1 micro-USD on each
 * ledger come first. `by`: whose money runs out.
 */
export async function raceForLeases(
  ledgers: readonly Ledger[],
  options: RaceOptions,
  by: 'account' | 'budget' = 'account',
): Promise<Race> {
  const limit = AMOUNT * BigInt(options.affordable);
  const first = 3 * ledgers.length;
  const account = await newRacer(ledgers, BigInt(first) + (by === 'account' ? limit : 10n * limit));
  const budgets = by === 'account' ? [] : [{ id: `${account}:all`, limit: BigInt(first) + limit }];
  for (let turn = 0; turn < first; turn += 1) {
    const id = `${account}-first-${turn}`;
    await ledgers[turn % ledgers.length]!.lock({ ...lockOf(account), id, amount: 1n, budgets });
  }
  return race(ledgers, options, account, { budgets });
}

/**
 * The same under one lock that can lend exactly `affordable` of them, of an account that could pay for all. `lent` is
 * the amount that the lock has lent at the end.
 */
export async function raceChildren(
  ledgers: readonly Ledger[],
  options: RaceOptions,
): Promise<Race & { readonly lent: bigint }> {
  const account = await newRacer(ledgers, AMOUNT * BigInt(options.affordable + options.attempts));
  const parent = `${account}-parent`;
  const lendable = AMOUNT * BigInt(options.affordable);
  await ledgers[0]!.lock({ ...lockOf(account), id: parent, amount: lendable, lendable });
  const raced = await race(ledgers, options, account, { parent });
  return { ...raced, lent: (await ledgers[0]!.find(parent))!.lent };
}

const lockOf = (account: string) => ({ account, prices: ['price-1'], expiresAt: Date.now() + 600_000, detail: '{}' });

async function newRacer(ledgers: readonly Ledger[], funds: bigint): Promise<string> {
  const account = `racer-${Math.random().toString(36).slice(2)}`;
  await ledgers[0]!.transfer({
    id: `fund-${account}`,
    from: treasuryOf('test'),
    to: escrowOf(account),
    amount: funds,
    memo: '',
  });
  // Every ledger opens its connection before the race begins.
  await Promise.all(ledgers.map((ledger) => ledger.release({ id: `warm-${account}`, detail: '{}' })));
  return account;
}

async function race(
  ledgers: readonly Ledger[],
  options: RaceOptions,
  account: string,
  more: Pick<LockRequest, 'parent' | 'budgets'>,
): Promise<Race> {
  let next = 0;
  let granted = 0;
  let refused = 0;
  let failed = 0;
  const count = (result: Awaited<ReturnType<Ledger['lock']>>) => {
    if (result.ok) granted += 1;
    else refused += 1;
  };
  const worker = async (ledger: Ledger) => {
    while (next < options.attempts) {
      const id = `${account}-${(next += 1)}`;
      await ledger.lock({ ...lockOf(account), id, amount: AMOUNT, ...more }).then(count, () => (failed += 1));
    }
  };
  await Promise.all(ledgers.flatMap((ledger) => Array.from({ length: options.width }, () => worker(ledger))));
  const balance = await ledgers[0]!.balance(escrowOf(account));
  return { granted, refused, failed, available: balance!.available, locked: balance!.locked };
}
