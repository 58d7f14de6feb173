/** The cost of a call for several gateways' ledgers on one PostgreSQL, and for the database. See `--help`. */
import { spawn, type ChildProcess } from 'node:child_process';
import { resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { Client } from 'pg';
import { bareDatabase } from '../test/support/fresh-database.ts';
import { startPostgres } from '../test/support/postgres.ts';
import type { LedgerGatewayOptions } from './ledger-gateway.ts';
import { percentile, type LedgerCost } from './ledger-load.ts';
import { cpuMicros } from './program.ts';

const HELP = `node bench/gateways.ts [--gateways 1,2,4] [--concurrent 32,256] [--rate 50] [--consumers 200] [--ms 3000] [--rounds 1]
                       [--broke 20] [--kept] [--far MS --flush MS] [--wal] [--before FOLDER]
  --gateways    processes, each with a ledger of its own on the same database
  --concurrent  calls at once, over all gateways
  --rate        instead: calls a second at each gateway, at random times
  --consumers   accounts that pay, the same ones at all gateways
  --broke       beside them, calls a second at each gateway of one account that has money for half of its calls
  --kept        locks outlive their process, as those of tasks do, so they wait for the disk; those of chat calls do not
  --far         milliseconds between the gateways and the database, in each direction
  --flush       milliseconds that a flush of the database takes at least
  --wal         also of what the WAL of a call consists, by the extension pg_walinspect
  --before      also another checkout of tollgate, with its node_modules, in turns with this one
A call is a lock and a settlement. All gateways share the consumers, 8 providers and the account of the fees. PostgreSQL is
the server of DATABASE_URL, on this machine (databases are made on it and dropped), else one that is started for the run.
`;

const { values: flags } = parseArgs({
  options: {
    gateways: { type: 'string', default: '1,2,4' },
    concurrent: { type: 'string', default: '32,256' },
    rate: { type: 'string' },
    consumers: { type: 'string', default: '200' },
    broke: { type: 'string', default: '0' },
    kept: { type: 'boolean', default: false },
    ms: { type: 'string', default: '3000' },
    rounds: { type: 'string', default: '1' },
    far: { type: 'string' },
    flush: { type: 'string' },
    wal: { type: 'boolean' },
    before: { type: 'string' },
    help: { type: 'boolean' },
  },
});
if (flags.help) {
  process.stdout.write(HELP);
  process.exit();
}
const numbers = (list: string) => list.split(',').map(Number);
const here = (path: string) => new URL(path, import.meta.url).pathname;

/** A gateway's process. It writes one answer per line of its input. */
interface GatewayProcess {
  readonly child: ChildProcess;
  next(): Promise<unknown>;
}

/** A version of tollgate, with a database and gateways of its own. */
interface Version {
  readonly title: string;
  readonly checkout: string;
  readonly url: string;
  readonly observer: Client;
  readonly gateways: GatewayProcess[];
  readonly drop: () => Promise<void>;
}

const server = process.env['DATABASE_URL']
  ? null
  : await startPostgres({
      settings: {
        shared_buffers: '512MB',
        max_wal_size: '8GB',
        // The leader of each flush waits so long before it.
        ...(flags.flush ? { commit_delay: String(Number(flags.flush) * 1_000), commit_siblings: '0' } : {}),
      },
    });
const serverUrl = server?.url ?? process.env['DATABASE_URL']!;
const proxy = flags.far
  ? startLines([here('targets/delay-proxy.ts'), new URL(serverUrl).port || '5432', flags.far])
  : null;
const proxyPort = proxy && ((await proxy.next()) as { port: number }).port;
const versions: Version[] = [];
try {
  const checkouts = [
    ...(flags.before ? [['before', pathToFileURL(`${resolve(flags.before)}/`).href]] : []),
    ['now', new URL('../', import.meta.url).href],
  ] as [string, string][];
  for (const [title, checkout] of checkouts) {
    const { url, drop } = await bareDatabase(serverUrl);
    const observer = new Client({ connectionString: url });
    await observer.connect();
    if (flags.wal) await observer.query('CREATE EXTENSION pg_walinspect');
    versions.push({ title, checkout, url, observer, drop, gateways: [] });
  }
  console.log(
    '| gateways | load | version | calls/s | operations a group | lock p50 ms | p99 ms | settle p50 ms | p99 ms | gateways, CPU µs a call | database, CPU µs a call | WAL bytes a call |',
  );
  console.log('| ---: | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |');
  for (const count of numbers(flags.gateways)) {
    for (const version of versions)
      while (version.gateways.length < count)
        version.gateways.push(await startGatewayProcess(version, version.gateways.length));
    const loads = flags.rate ? numbers(flags.rate) : numbers(flags.concurrent);
    for (const load of loads)
      for (let round = 0; round < Number(flags.rounds); round += 1)
        for (const version of versions) await measure(version, count, load);
  }
} finally {
  for (const { gateways, observer, drop } of versions) {
    await Promise.all(gateways.map(end));
    await observer.end();
    await drop();
  }
  if (proxy) await end(proxy);
  await server?.stop();
}

/** Starts a program of this folder. It writes JSON lines. */
function startLines(args: readonly string[]): GatewayProcess {
  const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    child,
    async next() {
      const line = await lines.next();
      if (line.done) throw new Error(`${args[0]} has ended`);
      return JSON.parse(line.value) as unknown;
    },
  };
}

async function startGatewayProcess({ url, checkout }: Version, index: number): Promise<GatewayProcess> {
  const far = new URL(url);
  if (proxyPort !== null) {
    far.port = String(proxyPort);
    far.hostname = '127.0.0.1';
  }
  const options: LedgerGatewayOptions = {
    url: far.href,
    name: `${Date.now().toString(36)}-${index}`,
    consumers: Number(flags.consumers),
    kept: flags.kept,
    checkout,
  };
  const gateway = startLines([here('ledger-gateway.ts'), JSON.stringify(options)]);
  await gateway.next();
  return gateway;
}

async function end({ child }: GatewayProcess): Promise<void> {
  child.stdin!.end();
  if (child.exitCode === null) await new Promise((resolve) => child.once('exit', resolve));
}

/** CPU microseconds of each process of the PostgreSQL server. */
async function databaseCpu(observer: Client): Promise<Map<number, number>> {
  const { rows } = await observer.query<{ pid: number }>(
    'SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid()',
  );
  return new Map(rows.map(({ pid }) => [pid, cpuMicros(pid)]));
}

/** Bytes of WAL since the server was made. */
async function walBytes(observer: Client): Promise<number> {
  const { rows } = await observer.query<{ bytes: string }>(
    "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0') AS bytes",
  );
  return Number(rows[0]!.bytes);
}

/** Prints the records of the WAL from `before` to `after`, by what they change, a call. */
async function printRecords(observer: Client, before: number, after: number, calls: number): Promise<void> {
  const { rows } = await observer.query<{ what: string; record: string; count: string; bytes: string }>(
    `WITH places AS (SELECT CAST('0/0' AS pg_lsn) + $1::numeric AS since, CAST('0/0' AS pg_lsn) + $2::numeric AS until),
     changed AS (
       SELECT DISTINCT ON (start_lsn) start_lsn, CAST(pg_filenode_relation(reltablespace, relfilenode) AS TEXT) AS what
       FROM places, pg_get_wal_block_info(since, until) ORDER BY start_lsn, block_id
     )
     SELECT COALESCE(what, '') AS what, resource_manager || ' ' || record_type AS record, count(*) AS count,
       sum((record_length + 7) / 8 * 8) AS bytes
     FROM places, pg_get_wal_records_info(since, until) AS records LEFT JOIN changed ON changed.start_lsn = records.start_lsn
     GROUP BY 1, 2 ORDER BY bytes DESC LIMIT 20`,
    [before, after],
  );
  console.log('\n| table or index | record | records a call | bytes a call |\n| --- | --- | ---: | ---: |');
  for (const { what, record, count, bytes } of rows)
    console.log(
      `| ${what} | ${record} | ${(Number(count) / calls).toFixed(2)} | ${(Number(bytes) / calls).toFixed(0)} |`,
    );
  console.log('');
}

async function measure({ title, gateways, observer }: Version, count: number, load: number): Promise<void> {
  const used = gateways.slice(0, count);
  const ms = Number(flags.ms);
  const broke = Number(flags.broke);
  const order = flags.rate ? { rate: load, ms, broke } : { concurrency: load / count, ms, broke };
  const [cpuBefore, walBefore] = [await databaseCpu(observer), await walBytes(observer)];
  for (const { child } of used) child.stdin!.write(`${JSON.stringify(order)}\n`);
  const costs = (await Promise.all(used.map(({ next }) => next()))) as LedgerCost[];
  const [cpuAfter, walAfter] = [await databaseCpu(observer), await walBytes(observer)];
  const sum = (value: (cost: LedgerCost) => number) => costs.reduce((total, cost) => total + value(cost), 0);
  const calls = sum(({ pairs }) => pairs);
  const groups = costs.flatMap((cost) => cost.groups);
  const lockMs = costs.flatMap((cost) => cost.lockMs);
  const settleMs = costs.flatMap((cost) => cost.settleMs);
  const database = cpuAfter.entries().reduce((total, [pid, cpu]) => total + cpu - (cpuBefore.get(pid) ?? 0), 0);
  const cells = [
    count,
    flags.rate ? `${load}/s each` : `${load} at once`,
    title,
    Math.round(sum(({ pairs, ms: took }) => (pairs / took) * 1_000)).toLocaleString('en'),
    ((2 * calls) / groups.length).toFixed(1),
    percentile(lockMs, 0.5).toFixed(1),
    percentile(lockMs, 0.99).toFixed(1),
    percentile(settleMs, 0.5).toFixed(1),
    percentile(settleMs, 0.99).toFixed(1),
    (sum(({ cpuMicros: cpu }) => cpu) / calls).toFixed(1),
    (database / calls).toFixed(1),
    Math.round((walAfter - walBefore) / calls).toLocaleString('en'),
  ];
  console.log(`| ${cells.join(' | ')} |`);
  if (flags.wal) await printRecords(observer, walBefore, walAfter, calls);
}
