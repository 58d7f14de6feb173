/**
 * Pairs of lock and settlement on the ledger alone, with fsync, alternating with another checkout's ledger. See
 * `--help`.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { tmpdir } from 'node:os';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { bareDatabase } from '../test/support/fresh-database.ts';
import { startPostgres } from '../test/support/postgres.ts';
import { openLoaded, percentile, type LedgerCost, type Loaded } from './ledger-load.ts';

const HELP = `node bench/ledger.ts [embedded] [postgres] [--before FOLDER] [--concurrent 1,32,512] [--rounds 5] [--ms 1000]
  --before  another checkout of tollgate, with its node_modules: measured in turns, in the same process
PostgreSQL is the server of DATABASE_URL (two databases are made on it and dropped), else one that is started for the run.
CPU is of this process, all threads; the server's own is not in it. Figures are medians of the rounds.
`;
const ENGINES = ['embedded', 'postgres'] as const;
type Engine = (typeof ENGINES)[number];

const { values: flags, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    before: { type: 'string' },
    concurrent: { type: 'string', default: '1,32,512' },
    rounds: { type: 'string', default: '5' },
    ms: { type: 'string', default: '1000' },
    help: { type: 'boolean' },
  },
});
if (flags.help) {
  process.stdout.write(HELP);
  process.exit();
}
const wanted = positionals.length > 0 ? positionals : ENGINES;
const unknown = wanted.find((name) => !ENGINES.includes(name as Engine));
if (unknown !== undefined) throw new Error(`There is no engine ${unknown}.\n${HELP}`);
const trees = [
  ...(flags.before === undefined ? [] : [{ name: 'before', url: pathToFileURL(`${resolve(flags.before)}/`) }]),
  { name: 'now', url: new URL('../', import.meta.url) },
];

console.log('| engine | concurrent | tree | pairs/s | CPU µs a pair | ÷ before | lock p50 ms | p99 ms |');
console.log('| --- | ---: | --- | ---: | ---: | ---: | ---: | ---: |');
for (const engine of wanted as readonly Engine[]) await measureEngine(engine);

async function measureEngine(engine: Engine): Promise<void> {
  const ends: (() => Promise<unknown>)[] = [];
  const ledgers: Loaded[] = [];
  try {
    const serverUrl = engine === 'postgres' ? await server(ends) : '';
    for (const { name, url } of trees) {
      const ledger = await openLoaded(await place(serverUrl, ends), `${Date.now().toString(36)}${name}`, url);
      ends.push(() => ledger.close());
      ledgers.push(ledger);
      await ledger.drive(512, 1_000);
    }
    for (const concurrency of flags.concurrent.split(',').map(Number)) {
      const costs: LedgerCost[][] = trees.map(() => []);
      for (let round = 0; round < Number(flags.rounds); round += 1)
        for (const [index, ledger] of ledgers.entries())
          costs[index]!.push(await ledger.drive(concurrency, Number(flags.ms)));
      print(engine, concurrency, costs);
    }
  } finally {
    for (const end of ends.toReversed()) await end();
  }
}

async function server(ends: (() => Promise<unknown>)[]): Promise<string> {
  const named = process.env['DATABASE_URL'];
  if (named) return named;
  const postgres = await startPostgres({ settings: { shared_buffers: '512MB', max_wal_size: '8GB' } });
  ends.push(() => postgres.stop());
  return postgres.url;
}

async function place(serverUrl: string, ends: (() => Promise<unknown>)[]) {
  if (serverUrl) {
    const { url, drop } = await bareDatabase(serverUrl);
    ends.push(drop);
    return { url, dataDir: '' };
  }
  const dataDir = mkdtempSync(join(tmpdir(), 'tollgate-bench-'));
  ends.push(async () => rmSync(dataDir, { recursive: true }));
  return { dataDir };
}

function print(engine: Engine, concurrency: number, costs: readonly (readonly LedgerCost[])[]): void {
  const medianOf = (index: number, value: (cost: LedgerCost) => number) => percentile(costs[index]!.map(value), 0.5);
  const cpu = ({ cpuMicros, pairs }: LedgerCost) => cpuMicros / pairs;
  for (const [index, { name }] of trees.entries()) {
    const own = medianOf(index, cpu);
    const cells = [
      engine,
      concurrency,
      name,
      Math.round(medianOf(index, ({ pairs, ms }) => (pairs / ms) * 1_000)).toLocaleString('en'),
      own.toFixed(1),
      trees.length > 1 && name === 'now' ? `${(own / medianOf(0, cpu)).toFixed(2)}×` : '–',
      medianOf(index, ({ lockMs }) => percentile(lockMs, 0.5)).toFixed(2),
      medianOf(index, ({ lockMs }) => percentile(lockMs, 0.99)).toFixed(2),
    ];
    console.log(`| ${cells.join(' | ')} |`);
  }
}
