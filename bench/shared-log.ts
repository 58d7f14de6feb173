/**
 * Threads that decide on rows in shared memory and write one log together, beside one thread with a log of its own. See
 * `--help`.
 */
import { closeSync, fsyncSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Worker } from 'node:worker_threads';
import { middle } from './in-turns.ts';
import { LOG_BYTES, MEMORY_BYTES, moneyIn, type Driven, type Order, type Setup } from './shared-log/thread.ts';

const HELP = `node bench/shared-log.ts [--rates 500,max] [--threads 1,2] [--rounds 5] [--seconds 2]
  --rates    pairs a second of each thread, at regular times; max: 32 at once in each thread
  --threads  threads that share the rows and the log
A pair is a lock and its settlement: changes of four rows, and a record of 850 bytes in the log, which is on the disk
(O_DSYNC) before the settlement is answered. It is the least that a ledger does, without its rules, its tables and its
reads. "own" is one thread with its rows and its log in its own memory. CPU is of all threads.
`;

const { values: flags } = parseArgs({
  options: {
    rates: { type: 'string', default: '500,max' },
    threads: { type: 'string', default: '1,2' },
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '2' },
    help: { type: 'boolean' },
  },
});

interface Cost {
  /** CPU microseconds a pair. */
  readonly cpu: number;
  readonly perSecond: number;
  readonly p50: number;
  readonly p99: number;
}

/** A file of zeros that are on the disk, as the ledger's log has them ahead of its records. */
function makeLog(path: string): string {
  const file = openSync(path, 'wx');
  writeSync(file, Buffer.alloc(LOG_BYTES));
  fsyncSync(file);
  closeSync(file);
  return path;
}

async function costOf(folder: string, count: number, isShared: boolean, order: Order): Promise<Cost> {
  const memory = new SharedArrayBuffer(MEMORY_BYTES);
  const setup: Setup = { memory, path: makeLog(join(folder, 'log')), isShared };
  const threads = Array.from(
    { length: count },
    () => new Worker(new URL('./shared-log/thread.ts', import.meta.url), { workerData: setup }),
  );
  const driven = (given: Order): Promise<readonly Driven[]> =>
    Promise.all(
      threads.map(async (thread) => {
        thread.postMessage(given);
        const [answer] = (await once(thread, 'message')) as [Driven];
        return answer;
      }),
    );
  try {
    // V8 compiles the code during these.
    await driven({ perSecond: null, ms: 500 });
    const before = process.cpuUsage();
    const begun = performance.now();
    const each = await driven(order);
    const ms = performance.now() - begun;
    const { user, system } = process.cpuUsage(before);
    if (isShared && moneyIn(memory) !== 0n) throw new Error('the threads have made or lost money');
    const pairs = each.reduce((sum, one) => sum + one.pairs, 0);
    return {
      cpu: (user + system) / pairs,
      perSecond: (pairs / ms) * 1_000,
      p50: middle(each.map(({ p50 }) => p50)),
      p99: Math.max(...each.map(({ p99 }) => p99)),
    };
  } finally {
    for (const thread of threads) await thread.terminate();
    rmSync(setup.path);
  }
}

async function main(): Promise<void> {
  if (flags.help) return void process.stdout.write(HELP);
  const kinds = [
    { name: 'own', count: 1, isShared: false },
    ...flags.threads.split(',').map((count) => ({ name: 'shared', count: Number(count), isShared: true })),
  ];
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-shared-log-'));
  try {
    console.log('| pairs/s of a thread | log | threads | pairs/s | CPU µs a pair | ÷ own | settle p50 ms | p99 ms |');
    console.log('| ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: |');
    for (const rate of flags.rates.split(',')) {
      const order = { perSecond: rate === 'max' ? null : Number(rate), ms: Number(flags.seconds) * 1_000 };
      const rounds: Cost[][] = [];
      for (let round = 0; round < Number(flags.rounds); round += 1) {
        const costs: Cost[] = [];
        for (const { count, isShared } of kinds) costs.push(await costOf(folder, count, isShared, order));
        rounds.push(costs);
      }
      for (const [at, { name, count }] of kinds.entries()) {
        const of = (figure: (own: Cost, first: Cost) => number) =>
          middle(rounds.map((costs) => figure(costs[at]!, costs[0]!)));
        const cells = [
          rate,
          name,
          count,
          of(({ perSecond }) => perSecond).toFixed(0),
          of(({ cpu }) => cpu).toFixed(1),
          of((own, first) => own.cpu / first.cpu).toFixed(2),
          of(({ p50 }) => p50).toFixed(2),
          of(({ p99 }) => p99).toFixed(2),
        ];
        console.log(`| ${cells.join(' | ')} |`);
      }
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
}

await main();
