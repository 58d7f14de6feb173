import { escrowOf, LedgerUnavailable, treasuryOf, type Ledger } from '#billing';
import type { SettleResult } from '../../src/billing/ledger.ts';
import { CRASH_PRICE } from './crash-price.ts';

export interface LoadResult {
  /** What each lock was told to be at the end; `unknown` when the ledger was unavailable to lock it. */
  readonly told: ReadonlyMap<string, 'settled' | 'released' | 'unknown'>;
  /** Settlements and releases that did not answer `ok`, and errors that are no LedgerUnavailable. */
  readonly surprises: readonly unknown[];
  readonly unavailable: number;
}

/**
 * Locks, and then settles or releases, `width` calls at a time until `done` says so: plain calls and, in turn,
 * calls under a run of the worker's, which is kept and released at the end.
 */
export async function loadLedger(
  ledger: Ledger,
  options: { width: number; prefix: string; done: () => boolean; onPair?: () => void },
): Promise<LoadResult> {
  const told = new Map<string, 'settled' | 'released' | 'unknown'>();
  const surprises: unknown[] = [];
  let unavailable = 0;
  await ledger.transfer({
    id: `fund-${options.prefix}`,
    from: treasuryOf('test'),
    to: escrowOf('load'),
    amount: 10n ** 12n,
    memo: '',
  });
  const attempt = async (id: string, state: 'settled' | 'released', run: () => Promise<Pick<SettleResult, 'ok'>>) => {
    try {
      const result = await run();
      if (!result.ok) surprises.push({ id, result });
      told.set(id, state);
    } catch (error) {
      surprises.push(error);
    }
  };
  const worker = async (index: number) => {
    const run = `${options.prefix}-${index}-run`;
    const runLock = {
      id: run,
      account: 'load',
      amount: 10n ** 7n,
      lendable: 10n ** 7n,
      prices: [CRASH_PRICE.id],
      expiresAt: 0,
      detail: '{}',
    };
    surprises.push(...[await ledger.lock(runLock)].filter(({ ok }) => !ok));
    for (let turn = 0; !options.done(); turn += 1) {
      const id = `${options.prefix}-${index}-${turn}`;
      try {
        const under = turn % 2 > 0;
        const locked = await ledger.lock({
          id,
          account: 'load',
          amount: 50n,
          prices: [CRASH_PRICE.id],
          expiresAt: Date.now() + 600_000,
          detail: '{}',
          ...(under ? { parent: run } : {}),
        });
        if (!locked.ok) surprises.push({ id, locked });
        // Most often with the calls of others, now and then alone: that has no row in the journal.
        if (under) surprises.push(...[await ledger.keep(run, Date.now() + 600_000 + turn)].filter(({ ok }) => !ok));
      } catch (error) {
        if (!(error instanceof LedgerUnavailable)) surprises.push(error);
        unavailable += 1;
        told.set(id, 'unknown');
        continue;
      }
      if (turn % 3 > 0) {
        const settlement = {
          price: CRASH_PRICE.id,
          provider: 'p',
          charge: 7n,
          draw: false,
          feeBps: 1_000,
          usage: '{"call":7}',
          detail: '{}',
        };
        await attempt(id, 'settled', () => ledger.settle({ id, ...settlement }));
      } else await attempt(id, 'released', () => ledger.release({ id, detail: '{}' }));
      options.onPair?.();
    }
    await attempt(run, 'released', () => ledger.release({ id: run, detail: '{}' }));
  };
  await Promise.all(Array.from({ length: options.width }, (_, index) => worker(index)));
  return { told, surprises, unavailable };
}

/** Ids whose lock is not what the load was told. A lock whose answer was lost may be held or not there. */
export async function contradictions(ledger: Ledger, told: LoadResult['told']): Promise<readonly string[]> {
  const found: string[] = [];
  const waiting = [...told];
  const reader = async () => {
    for (let next = waiting.pop(); next; next = waiting.pop()) {
      const [id, state] = next;
      const record = await ledger.find(id);
      const agrees = state === 'unknown' ? record === null || record.state === 'held' : record?.state === state;
      if (!agrees) found.push(`${id} was told ${state} and is ${record?.state}`);
    }
  };
  await Promise.all(Array.from({ length: 8 }, reader));
  return found;
}
