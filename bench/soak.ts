/** Whether a gateway under hours of mixed load grows or slows down. See `--help`. */
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { startGenerator, type Generator } from './generator.ts';
import type { Job } from './load/job.ts';
import { mcpJobFor, TOOL_PATH, toolsText } from './mcp-targets.ts';
import { jobFor } from './measure.ts';
import { announcedPort, cpuMicros, residentBytes, startProgram } from './program.ts';
import { median, table } from './report.ts';
import { AGENT_PATH, agentText, messageJobFor } from './route-targets.ts';
import { modelsText, tollgate, type Target } from './targets.ts';
import { TOOLS } from './upstream/mcp-replies.ts';
import { MODELS } from './upstream/replies.ts';

const HELP = `node bench/soak.ts [--minutes 120] [--warm 30] [--rate 300] [--flush each]
  --rate     calls a second: 6 of 10 plain chat calls, 2 streams, a tool call and a message to an agent
  --warm     minutes at the beginning that the growth leaves out
  --flush    the value of ledger.flush
Prints a line for each minute, the heap of each thread (0 is the main thread) at the begin and at the end of what
counts, the growth in MiB an hour with its standard error, and the bytes that each table has for a call.
`;
/** The most that may be growth. */
const MIB_PER_HOUR_MAX = 5;
const TURN_MS = 10_000;
const TURNS_PER_MINUTE = 60_000 / TURN_MS;
const MIB = 1024 * 1024;
const HOUR_MS = 3_600_000;

const { values: flags } = parseArgs({
  options: {
    minutes: { type: 'string', default: '120' },
    warm: { type: 'string', default: '30' },
    rate: { type: 'string', default: '300' },
    flush: { type: 'string', default: 'each' },
    help: { type: 'boolean' },
  },
});

interface Sample {
  readonly ms: number;
  readonly residentMib: number;
}

interface Turn {
  readonly calls: number;
  readonly p50: number;
  readonly p99: number;
}

interface ThreadHeap {
  readonly heap: number;
  readonly used: number;
  readonly external: number;
  readonly at: number;
}

const mib = (bytes: number) => (bytes / MIB).toFixed(1);

const jobsOf = (target: Target, perSecond: number): readonly Job[] => {
  const shape = (share: number) => ({ kind: 'open', perSecond: perSecond * share, durationMs: TURN_MS }) as const;
  return [
    jobFor(target, MODELS.small, shape(0.6)),
    jobFor(target, MODELS.short, shape(0.2)),
    mcpJobFor({ ...target, path: TOOL_PATH }, TOOLS.small, shape(0.1)),
    messageJobFor({ ...target, path: AGENT_PATH }, 'message', shape(0.1)),
  ];
};

/** All jobs at once, each from its own process. */
async function turn(generators: readonly Generator[], jobs: readonly Job[]): Promise<Turn> {
  const results = await Promise.all(jobs.map((job, index) => generators[index]!.run(job)));
  const failed = results.find(({ errors }) => errors > 0);
  if (failed) throw new Error(`${failed.errors} calls failed: ${failed.firstError}`);
  return {
    calls: results.reduce((sum, { calls }) => sum + calls, 0),
    p50: results[0]!.latency.p50,
    p99: results[0]!.latency.p99,
  };
}

/** The slope of a line through the samples in MiB an hour, and its standard error. */
function growthOf(samples: readonly Sample[]): { readonly slope: number; readonly error: number } {
  const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const hours = samples.map(({ ms }) => ms / HOUR_MS);
  const [x, y] = [mean(hours), mean(samples.map(({ residentMib }) => residentMib))];
  const squares = hours.reduce((sum, hour) => sum + (hour - x) ** 2, 0);
  const slope = samples.reduce((sum, { residentMib }, at) => sum + (hours[at]! - x) * (residentMib - y), 0) / squares;
  const rest = samples.reduce((sum, { residentMib }, at) => sum + (residentMib - y - slope * (hours[at]! - x)) ** 2, 0);
  return { slope, error: Math.sqrt(rest / (samples.length - 2) / squares) };
}

function heapsIn(folder: string): string {
  const threads = readdirSync(folder).toSorted();
  const heaps = threads.map((name) => JSON.parse(readFileSync(join(folder, name), 'utf8')) as ThreadHeap);
  return threads
    .flatMap((name, index) => {
      const { heap, used, external, at } = heaps[index]!;
      const isGone = Date.now() - at > 2 * TURN_MS;
      return isGone
        ? []
        : [`${name.replace('.json', '')}: ${mib(heap)} (${mib(used)} used), external ${mib(external)}`];
    })
    .join('; ');
}

function filesOf(dataDir: string): { readonly database: number; readonly wal: number; readonly log: number } {
  const size = (path: string) => statSync(join(dataDir, path), { throwIfNoEntry: false })?.size ?? 0;
  const log = readdirSync(join(dataDir, 'ledger')).reduce((sum, name) => sum + size(join('ledger', name)), 0);
  return { database: size('tollgate.db'), wal: size('tollgate.db-wal'), log };
}

/** Bytes of each table with its indexes. */
function tablesOf(dataDir: string): ReadonlyMap<string, number> {
  const database = new DatabaseSync(join(dataDir, 'tollgate.db'), { readOnly: true });
  const rows = database
    .prepare('SELECT tbl_name AS name, sum(pgsize) AS bytes FROM dbstat JOIN sqlite_schema USING (name) GROUP BY 1')
    .all() as { name: string; bytes: number }[];
  database.close();
  return new Map(rows.map(({ name, bytes }) => [name, bytes]));
}

async function soak(target: Target, heaps: string, generators: readonly Generator[]): Promise<void> {
  const { pid, dataDir } = target;
  const [minutes, warm] = [Number(flags.minutes), Number(flags.warm)];
  const jobs = jobsOf(target, Number(flags.rate));
  const begun = performance.now();
  const samples: Sample[] = [];
  const turns: Turn[] = [];
  let calls = 0;
  let tables: ReadonlyMap<string, number> = new Map();
  let callsBefore = 0;
  process.stdout.write('minute  calls  RSS MiB  p50 ms  p99 ms  CPU µs a call  database, WAL, log MiB\n');
  for (let minute = 1; minute <= minutes; minute++) {
    const cpuBefore = cpuMicros(pid!);
    const now: Turn[] = [];
    for (let at = 0; at < TURNS_PER_MINUTE; at++) {
      now.push(await turn(generators, jobs));
      if (minute > warm) samples.push({ ms: performance.now() - begun, residentMib: residentBytes(pid!) / MIB });
    }
    const made = now.reduce((sum, one) => sum + one.calls, 0);
    calls += made;
    if (minute > warm) turns.push(...now);
    const { database, wal, log } = filesOf(dataDir!);
    const cells = [
      String(minute).padStart(6),
      String(calls).padStart(7),
      mib(residentBytes(pid!)),
      (median(now.map(({ p50 }) => p50)) ?? 0).toFixed(2),
      (median(now.map(({ p99 }) => p99)) ?? 0).toFixed(1),
      ((cpuMicros(pid!) - cpuBefore) / made).toFixed(0),
      [database, wal, log].map(mib).join(', '),
    ];
    process.stdout.write(`${cells.join('  ')}\n`);
    if (minute === warm || minute === minutes) process.stdout.write(`heaps in MiB: ${heapsIn(heaps)}\n`);
    if (minute === warm) [tables, callsBefore] = [tablesOf(dataDir!), calls];
  }
  const { slope, error } = growthOf(samples);
  const half = turns.length >> 1;
  const p99 = (part: readonly Turn[]) => (median(part.map((one) => one.p99)) ?? 0).toFixed(1);
  const grown = [...tablesOf(dataDir!)].map(([name, bytes]) => [name, bytes - (tables.get(name) ?? 0)] as const);
  const verdict =
    slope + error <= MIB_PER_HOUR_MAX ? 'reached' : slope - error > MIB_PER_HOUR_MAX ? '**missed**' : 'not shown';
  process.stdout.write(
    `\nRSS grows by ${slope.toFixed(1)} ± ${error.toFixed(1)} MiB an hour after ${warm} minutes (≤ ${MIB_PER_HOUR_MAX}: ${verdict}). p99 of the first and the second half: ${p99(turns.slice(0, half))}, ${p99(turns.slice(half))} ms.\n\n${table(
      ['table', 'bytes a call'],
      grown
        .filter(([, bytes]) => bytes > 0)
        .toSorted(([, a], [, b]) => b - a)
        .map(([name, bytes]) => [name, (bytes / (calls - callsBefore)).toFixed(1)]),
    )}\n`,
  );
}

async function main(): Promise<void> {
  if (flags.help) return void process.stdout.write(HELP);
  const heaps = fileURLToPath(new URL('results/soak', import.meta.url));
  rmSync(heaps, { recursive: true, force: true });
  mkdirSync(heaps, { recursive: true });
  const upstream = startProgram([fileURLToPath(new URL('upstream/main.ts', import.meta.url))]);
  const generators: Generator[] = [];
  try {
    const port = await announcedPort(upstream);
    const sampler = new URL(`targets/sample-heaps.ts?${encodeURIComponent(heaps)}`, import.meta.url).href;
    const target = await tollgate(port, {
      flush: flags.flush,
      nodeArgs: ['--import', sampler],
      blocks: modelsText(port) + toolsText(port, '0.001') + agentText(port),
    });
    try {
      generators.push(...jobsOf(target, 1).map(() => startGenerator()));
      await soak(target, heaps, generators);
    } finally {
      await target.stop();
    }
  } finally {
    for (const generator of generators) generator.stop();
    await upstream.stop();
  }
}

await main();
