import { escrowOf, LedgerUnavailable, treasuryOf, type Ledger } from '#billing';
import type { SettleResult } from '../../src/billing/ledger/ledger.ts';
import { CRASH_PRICE } from './crash-price.ts';

export interface LoadResult {
  /** The last acknowledged state of each lock. `unknown` if the ledger was unavailable for the lock. */
  readonly told: ReadonlyMap<string, 'settled' | 'released' | 'unknown'>;
  /** Results of settlements and releases other than `ok`, and errors other than LedgerUnavailable. */
  readonly surprises: readonly unknown[];
  readonly unavailable: number;
}

/**
 * Locks calls and then settles or releases them, `width` calls at a time, until `done` returns true. Plain calls
 * alternate with calls under a run, which is kept and released at the end.
 */
export async function loadLedger(
  ledger: Ledger,
  options: {
    width: number;
    prefix: string;
    done: () => boolean;
    onPair?: () => void;
    onUnavailable?: (error: LedgerUnavailable) => void;
  },
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
        // Mostly this is committed in one group with operations of others. Alone in its group, it has no row in the
        // journal.
        if (under) surprises.push(...[await ledger.keep(run, Date.now() + 600_000 + turn)].filter(({ ok }) => !ok));
      } catch (error) {
        if (error instanceof LedgerUnavailable) options.onUnavailable?.(error);
        else surprises.push(error);
        unavailable += 1;
        told.set(id, 'unknown');
        // A closed ledger rejects at once. Without a pause, no timer of this process would run any more.
        await new Promise((resolve) => setImmediate(resolve));
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

/**
 * Returns the ids of locks whose state contradicts the acknowledgements. A lock whose answer was lost may be held or
 * missing.
 */
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
