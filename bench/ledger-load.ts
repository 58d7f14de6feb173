import type { createLedger as CreateLedger } from '../src/billing/ledger/ledger-create.ts';
import type { Ledger } from '../src/billing/ledger/ledger.ts';
import type { openDatabase as OpenDatabase } from '../src/foundation/store/open.ts';

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
  /** The same of the settlements of these calls. */
  settleMs: number[];
}

/** A ledger under measurement. */
export interface Loaded {
  /** Locks and settles for this time, with this many calls at once. */
  drive(concurrency: number, forMs: number): Promise<LedgerCost>;
  /** Begins so many pairs a second, at random times (a Poisson process), however long they take. */
  driveAtRate(perSecond: number, forMs: number): Promise<LedgerCost>;
  /** Begins so many calls a second for an account that gets money for half of them. */
  driveBroke(perSecond: number, forMs: number): Promise<void>;
  close(): Promise<void>;
}

/**
 * Opens the ledger of a checkout (default: this one) and funds its accounts. `name` makes the ids of different ledgers
 * unique. `kept`: its locks outlive their process, as those of tasks do, so they wait for the disk. Those of chat calls
 * do not.
 */
export async function openLoaded(
  options: Parameters<typeof OpenDatabase>[0],
  name: string,
  checkout: URL = new URL('../', import.meta.url),
  { accounts = ACCOUNTS, kept = false }: { readonly accounts?: number; readonly kept?: boolean } = {},
): Promise<Loaded> {
  const { openDatabase } = (await import(new URL('src/foundation/store/open.ts', checkout).href)) as {
    openDatabase: typeof OpenDatabase;
  };
  const { createLedger } = (await import(new URL('src/billing/ledger/ledger-create.ts', checkout).href)) as {
    createLedger: typeof CreateLedger;
  };
  const database = await openDatabase(options);
  let groups: number[] = [];
  const ledger = await createLedger({ database, onBatch: ({ size }) => groups.push(size) });
  // All gateways fund the same accounts.
  await Promise.all(
    Array.from({ length: accounts }, (_, account) =>
      ledger.transfer({
        id: `${name}-${account}`,
        from: 'treasury:bench',
        to: `escrow:bench-${account}`,
        amount: 10n ** 12n,
        memo: 'bench',
      }),
    ),
  );
  const load: Load = { ledger, accounts, endsWithCall: !kept };
  let run = 0;
  const costOf = async (drive: (prefix: string) => ReturnType<typeof callers>): Promise<LedgerCost> => {
    groups = [];
    run += 1;
    const cpu = process.cpuUsage();
    const begun = performance.now();
    const driven = await drive(`${name}-${run.toString(36)}`);
    const ms = performance.now() - begun;
    // A read waits until the tables of the embedded ledger have caught up with its log.
    await ledger.find('none');
    const { user, system } = process.cpuUsage(cpu);
    return { ...driven, ms, cpuMicros: user + system, groups };
  };
  return {
    drive: (concurrency, forMs) => costOf((prefix) => callers(load, concurrency, forMs, prefix)),
    driveAtRate: (perSecond, forMs) => costOf((prefix) => arrivals(load, perSecond, forMs, prefix)),
    async driveBroke(perSecond, forMs) {
      run += 1;
      await brokeCalls(ledger, perSecond, forMs, `${name}-${run.toString(36)}-broke`);
    },
    async close() {
      await ledger.close();
      await database.close();
    },
  };
}

interface Load {
  readonly ledger: Ledger;
  readonly accounts: number;
  readonly endsWithCall: boolean;
}

interface Driven {
  pairs: number;
  readonly lockMs: number[];
  readonly settleMs: number[];
}

const LOCK = {
  prices: ['price-0123456789abcdef0123456789abcdef'],
  detail: '{"kind":"chat","service":"demo/model-1","key":"0123456789abcdef","request_id":"0123456789abcdef"}',
};
const SETTLE = {
  price: 'price-0123456789abcdef0123456789abcdef',
  charge: 345n,
  draw: false,
  feeBps: 100,
  usage: '{"prompt":1200,"completion":345}',
  detail: '{"finish_reason":"stop","latency_ms":812,"stream":true}',
};

/** One pair: a lock and its settlement. Its latencies are noted if it is a part of the sample. */
async function pair(
  { ledger, endsWithCall }: Load,
  driven: Driven,
  id: string,
  account: number,
  isSample: boolean,
): Promise<void> {
  const asked = performance.now();
  const locked = await ledger.lock({
    id,
    account: `bench-${account}`,
    amount: 900n,
    expiresAt: Date.now() + 600_000,
    endsWithCall,
    ...LOCK,
  });
  const given = performance.now();
  if (!locked.ok) throw new Error(`lock refused: ${locked.reason}`);
  const settled = await ledger.settle({ id, provider: `provider-${account % 8}`, ...SETTLE });
  if (!settled.ok) throw new Error(`settlement refused: ${settled.reason}`);
  driven.pairs += 1;
  if (!isSample) return;
  driven.lockMs.push(given - asked);
  driven.settleMs.push(performance.now() - given);
}

/** Ids in the gateway's format: a prefix of the process and a counter. */
const idOf = (prefix: string, count: number) => `gen-${prefix}-${count.toString(36).padStart(8, '0')}`;

async function callers(load: Load, concurrency: number, forMs: number, prefix: string) {
  const driven: Driven = { pairs: 0, lockMs: [], settleMs: [] };
  let count = 0;
  const begun = performance.now();
  const caller = async (index: number) => {
    for (let turn = 0; performance.now() - begun < forMs; turn += 1)
      await pair(load, driven, idOf(prefix, (count += 1)), (index + turn) % load.accounts, turn % 16 === 0);
  };
  await Promise.all(Array.from({ length: concurrency }, (_, index) => caller(index)));
  return driven;
}

async function arrivals(load: Load, perSecond: number, forMs: number, prefix: string) {
  const driven: Driven = { pairs: 0, lockMs: [], settleMs: [] };
  const pairs: Promise<void>[] = [];
  const begun = performance.now();
  for (let at = 0; at < forMs; at += (-Math.log(1 - Math.random()) * 1_000) / perSecond) {
    const waitMs = begun + at - performance.now();
    if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs));
    const account = Math.floor(Math.random() * load.accounts);
    pairs.push(pair(load, driven, idOf(prefix, pairs.length + 1), account, true));
  }
  await Promise.all(pairs);
  return driven;
}

async function brokeCalls(ledger: Ledger, perSecond: number, forMs: number, prefix: string): Promise<void> {
  const calls: Promise<unknown>[] = [];
  const begun = performance.now();
  for (let at = 0; at < forMs; at += (-Math.log(1 - Math.random()) * 1_000) / perSecond) {
    const waitMs = begun + at - performance.now();
    if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs));
    const id = idOf(prefix, calls.length + 1);
    if (calls.length % 2 === 0)
      calls.push(ledger.transfer({ id, from: 'treasury:bench', to: `escrow:${BROKE}`, amount: 345n, memo: 'bench' }));
    const asked = { id, account: BROKE, amount: 900n, endsWithCall: true, ...LOCK, expiresAt: Date.now() + 600_000 };
    calls.push(
      ledger
        .lock(asked)
        .then((locked) => (locked.ok ? ledger.settle({ id, provider: 'provider-0', ...SETTLE }) : null)),
    );
  }
  await Promise.all(calls);
}

const BROKE = 'bench-broke';

/** The percentile `part` (0 to 1) of the values. NaN for an empty list. */
export function percentile(values: readonly number[], part: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN;
}
