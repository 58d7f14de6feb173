import type { createLedger as CreateLedger } from '../src/billing/ledger-create.ts';
import type { Ledger } from '../src/billing/ledger.ts';
import type { openDatabase as OpenDatabase } from '../src/store/open.ts';

const ACCOUNTS = 200;

/** The cost of a number of pairs. A pair is a lock and its settlement. */
export interface LedgerCost {
  pairs: number;
  ms: number;
  /** CPU time of this process, all threads. */
  cpuMicros: number;
  /** Number of operations in each committed group. */
  groups: number[];
  /** Milliseconds of a sample of locks, each from request to answer. */
  lockMs: number[];
}

/** A ledger under measurement. */
export interface Loaded {
  /** Locks and settles for this time, with this many calls at once. */
  drive(concurrency: number, forMs: number): Promise<LedgerCost>;
  close(): Promise<void>;
}

/**
 * Opens the ledger of a checkout (default: this one) and funds its accounts. `name` makes the ids of different ledgers
 * unique.
 */
export async function openLoaded(
  options: Parameters<typeof OpenDatabase>[0],
  name: string,
  checkout: URL = new URL('../', import.meta.url),
): Promise<Loaded> {
  const { openDatabase } = (await import(new URL('src/store/open.ts', checkout).href)) as {
    openDatabase: typeof OpenDatabase;
  };
  const { createLedger } = (await import(new URL('src/billing/ledger-create.ts', checkout).href)) as {
    createLedger: typeof CreateLedger;
  };
  const database = await openDatabase(options);
  let groups: number[] = [];
  const ledger = await createLedger({ database, onBatch: ({ size }) => groups.push(size) });
  for (let account = 0; account < ACCOUNTS; account += 1)
    await ledger.transfer({
      id: `${name}-${account}`,
      from: 'treasury:bench',
      to: `escrow:bench-${account}`,
      amount: 10n ** 12n,
      memo: 'bench',
    });
  let run = 0;
  return {
    async drive(concurrency, forMs) {
      groups = [];
      run += 1;
      const cpu = process.cpuUsage();
      const begun = performance.now();
      const { pairs, lockMs } = await callers(ledger, concurrency, forMs, `${name}-${run.toString(36)}`);
      const ms = performance.now() - begun;
      // A read waits until the tables of the embedded ledger have caught up with its log.
      await ledger.find('none');
      const { user, system } = process.cpuUsage(cpu);
      return { pairs, ms, cpuMicros: user + system, groups, lockMs };
    },
    async close() {
      await ledger.close();
      await database.close();
    },
  };
}

async function callers(ledger: Ledger, concurrency: number, forMs: number, prefix: string) {
  let pairs = 0;
  let count = 0;
  const lockMs: number[] = [];
  const begun = performance.now();
  const caller = async (index: number) => {
    for (let turn = 0; performance.now() - begun < forMs; turn += 1) {
      // Ids in the gateway's format: a prefix of the process and a counter.
      const id = `gen-${prefix}-${(count += 1).toString(36).padStart(8, '0')}`;
      const asked = performance.now();
      const locked = await ledger.lock({
        id,
        account: `bench-${(index + turn) % ACCOUNTS}`,
        amount: 900n,
        prices: ['price-0123456789abcdef0123456789abcdef'],
        expiresAt: Date.now() + 600_000,
        detail: '{"kind":"chat","service":"demo/model-1","key":"0123456789abcdef","request_id":"0123456789abcdef"}',
      });
      if (turn % 16 === 0) lockMs.push(performance.now() - asked);
      if (!locked.ok) throw new Error(`lock refused: ${locked.reason}`);
      const settled = await ledger.settle({
        id,
        price: 'price-0123456789abcdef0123456789abcdef',
        provider: `provider-${index % 8}`,
        charge: 345n,
        draw: false,
        feeBps: 100,
        usage: '{"prompt":1200,"completion":345}',
        detail: '{"finish_reason":"stop","latency_ms":812,"stream":true}',
      });
      if (!settled.ok) throw new Error(`settlement refused: ${settled.reason}`);
      pairs += 1;
    }
  };
  await Promise.all(Array.from({ length: concurrency }, (_, index) => caller(index)));
  return { pairs, lockMs };
}

/** The percentile `part` (0 to 1) of the values. NaN for an empty list. */
export function percentile(values: readonly number[], part: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN;
}
