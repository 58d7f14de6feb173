/** The cost of a call for several gateways' ledgers on one PostgreSQL, and for the database. See `--help`. */
import { spawn, type ChildProcess } from 'node:child_process';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { Client } from 'pg';
import { bareDatabase } from '../test/support/fresh-database.ts';
import { startPostgres } from '../test/support/postgres.ts';
import { percentile, type LedgerCost } from './ledger-load.ts';
import { cpuMicros } from './program.ts';

const HELP = `node bench/gateways.ts [--gateways 1,2,4] [--concurrent 32,256] [--ms 3000]
  --gateways    processes, each with a ledger of its own on the same database
  --concurrent  calls at once, over all gateways
A call is a lock and a settlement. All gateways share 200 consumers, 8 providers and the account of the fees. PostgreSQL is
the server of DATABASE_URL, on this machine (a database is made on it and dropped), else one that is started for the run.
`;

const { values: flags } = parseArgs({
  options: {
    gateways: { type: 'string', default: '1,2,4' },
    concurrent: { type: 'string', default: '32,256' },
    ms: { type: 'string', default: '3000' },
    help: { type: 'boolean' },
  },
});
if (flags.help) {
  process.stdout.write(HELP);
  process.exit();
}
const numbers = (list: string) => list.split(',').map(Number);

/** A gateway's process. It writes one answer per line of its input. */
interface GatewayProcess {
  readonly child: ChildProcess;
  next(): Promise<unknown>;
}

const server = process.env['DATABASE_URL']
  ? null
  : await startPostgres({ settings: { shared_buffers: '512MB', max_wal_size: '8GB' } });
const { url, drop } = await bareDatabase(server?.url ?? process.env['DATABASE_URL']!);
const observer = new Client({ connectionString: url });
await observer.connect();
const gateways: GatewayProcess[] = [];
try {
  console.log(
    '| gateways | calls at once | calls/s | operations a group | lock p50 ms | p99 ms | gateways, CPU µs a call | database, CPU µs a call | WAL bytes a call |',
  );
  console.log('| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |');
  for (const count of numbers(flags.gateways)) {
    while (gateways.length < count) gateways.push(await startGatewayProcess(gateways.length));
    for (const concurrent of numbers(flags.concurrent)) await measure(gateways.slice(0, count), concurrent);
  }
} finally {
  await Promise.all(gateways.map(end));
  await observer.end();
  await drop();
  await server?.stop();
}

async function startGatewayProcess(index: number): Promise<GatewayProcess> {
  const program = new URL('ledger-gateway.ts', import.meta.url).pathname;
  const name = `${Date.now().toString(36)}-${index}`;
  const child = spawn(process.execPath, [program, url, name], { stdio: ['pipe', 'pipe', 'inherit'] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const next = async () => {
    const line = await lines.next();
    if (line.done) throw new Error(`gateway ${index} has ended`);
    return JSON.parse(line.value) as unknown;
  };
  await next();
  return { child, next };
}

async function end({ child }: GatewayProcess): Promise<void> {
  child.stdin!.end();
  if (child.exitCode === null) await new Promise((resolve) => child.once('exit', resolve));
}

/** CPU microseconds of each process of the PostgreSQL server. */
async function databaseCpu(): Promise<Map<number, number>> {
  const { rows } = await observer.query<{ pid: number }>(
    'SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid()',
  );
  return new Map(rows.map(({ pid }) => [pid, cpuMicros(pid)]));
}

async function walBytes(): Promise<number> {
  const { rows } = await observer.query<{ bytes: string }>(
    "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0') AS bytes",
  );
  return Number(rows[0]!.bytes);
}

async function measure(used: readonly GatewayProcess[], concurrent: number): Promise<void> {
  const [cpuBefore, walBefore] = [await databaseCpu(), await walBytes()];
  for (const { child } of used)
    child.stdin!.write(`${JSON.stringify({ concurrency: concurrent / used.length, ms: Number(flags.ms) })}\n`);
  const costs = (await Promise.all(used.map(({ next }) => next()))) as LedgerCost[];
  const [cpuAfter, walAfter] = [await databaseCpu(), await walBytes()];
  const sum = (value: (cost: LedgerCost) => number) => costs.reduce((total, cost) => total + value(cost), 0);
  const calls = sum(({ pairs }) => pairs);
  const groups = costs.flatMap((cost) => cost.groups);
  const lockMs = costs.flatMap((cost) => cost.lockMs);
  const database = cpuAfter.entries().reduce((total, [pid, cpu]) => total + cpu - (cpuBefore.get(pid) ?? 0), 0);
  const cells = [
    used.length,
    concurrent,
    Math.round(sum(({ pairs, ms }) => (pairs / ms) * 1_000)).toLocaleString('en'),
    ((2 * calls) / groups.length).toFixed(1),
    percentile(lockMs, 0.5).toFixed(1),
    percentile(lockMs, 0.99).toFixed(1),
    (sum(({ cpuMicros: cpu }) => cpu) / calls).toFixed(1),
    (database / calls).toFixed(1),
    Math.round((walAfter - walBefore) / calls).toLocaleString('en'),
  ];
  console.log(`| ${cells.join(' | ')} |`);
}
