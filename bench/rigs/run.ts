/**
 * `node bench/rigs/run.ts`: tollgate beside gateways that registries have, in front of the same mock. See `--help` and
 * README.md.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { cpus, loadavg, release, totalmem } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { type Generator, startGenerator } from '../generator.ts';
import type { Job } from '../load/job.ts';
import { announcedPort, cpuMicros, residentBytes, startProgram } from '../program.ts';
import { median, table } from '../report.ts';
import type { Target } from '../targets.ts';
import { LUKEWARM, WARM, warm } from '../warm.ts';
import { jobFor, type Protocol } from './jobs.ts';
import { readRigs, type Rig } from './rigs.ts';

const HELP = `node bench/rigs/run.ts [--only NAME,…] [--rounds 3] [--seconds 3] [--rate 50] [--quick] [--out FOLDER]

Installs each rig from its registry into .cache/rigs, starts those that start, one after the other, in front of one mock
on 127.0.0.1, and writes machine.json, samples.csv, left-out.json and report.md into FOLDER (.cache/rigs/results).
  --only     ${readRigs()
    .map(({ name }) => name)
    .join(', ')}
  --rounds   measurements of each; the report has their medians
  --seconds  of each measurement: one with 16 connections, and one at --rate calls a second
  --quick    warms up for 1.5 s instead of up to 20 s
`;

const { values } = parseArgs({
  options: {
    only: { type: 'string' },
    rounds: { type: 'string', default: '3' },
    seconds: { type: 'string', default: '3' },
    rate: { type: 'string', default: '50' },
    quick: { type: 'boolean', default: false },
    out: { type: 'string' },
    help: { type: 'boolean' },
  },
});
const CONNECTIONS = 16;
const LOADS = ['full', 'rate'] as const;

interface Sample {
  readonly rig: string;
  readonly protocol: Protocol;
  readonly round: number;
  readonly load: (typeof LOADS)[number];
  readonly calls: number;
  readonly errors: number;
  readonly callsPerSecond: number;
  /** Of the gateway's process. null without a gateway. */
  readonly cpuMicrosPerCall: number | null;
  readonly residentMiB: number | null;
  readonly p50Ms: number;
  readonly p90Ms: number;
  readonly p99Ms: number;
  readonly generatorLoad: number;
}
const COLUMNS = [
  'rig',
  'protocol',
  'round',
  'load',
  'calls',
  'errors',
  'callsPerSecond',
  'cpuMicrosPerCall',
  'residentMiB',
  'p50Ms',
  'p90Ms',
  'p99Ms',
  'generatorLoad',
] as const satisfies readonly (keyof Sample)[];

const say = (text: string) => process.stderr.write(`${text}\n`);
if (values.help) process.stdout.write(HELP);
else await main();

async function main(): Promise<void> {
  const out = resolve(values.out ?? fileURLToPath(new URL('../../.cache/rigs/results', import.meta.url)));
  const wanted = values.only?.split(',');
  const rigs = readRigs().filter(({ name }) => wanted?.includes(name) ?? true);
  const machine = machineFacts();
  const samples: Sample[] = [];
  const leftOut: Record<string, string> = {};
  const generator = startGenerator();
  const mocks = {
    chat: startProgram([fileURLToPath(new URL('../upstream/main.ts', import.meta.url))]),
    tools: startProgram([fileURLToPath(new URL('mcp-server.ts', import.meta.url))]),
  };
  try {
    const ports = { chat: await announcedPort(mocks.chat), tools: await announcedPort(mocks.tools) };
    for (const rig of rigs) {
      say(rig.name);
      try {
        rig.install();
        samples.push(...(await measured(rig, ports[rig.protocol], generator)));
      } catch (error) {
        leftOut[rig.name] = (error as Error).message.slice(-2_000);
        say(`  left out: ${leftOut[rig.name]!.slice(-300)}`);
      }
    }
  } finally {
    generator.stop();
    await Promise.all([mocks.chat.stop(), mocks.tools.stop()]);
  }
  mkdirSync(out, { recursive: true });
  const rows = samples.map((sample) => COLUMNS.map((column) => sample[column] ?? '').join(','));
  const report = reportOf(rigs, samples, machine, leftOut);
  writeFileSync(join(out, 'machine.json'), `${JSON.stringify(machine, null, 2)}\n`);
  writeFileSync(join(out, 'samples.csv'), `${[COLUMNS.join(','), ...rows].join('\n')}\n`);
  writeFileSync(join(out, 'left-out.json'), `${JSON.stringify(leftOut, null, 2)}\n`);
  writeFileSync(join(out, 'report.md'), report);
  process.stdout.write(report);
  say(`raw files: ${out}`);
}

async function measured(rig: Rig, upstreamPort: number, generator: Generator): Promise<readonly Sample[]> {
  const target = await rig.start(upstreamPort);
  try {
    const job = await jobFor(rig.protocol, target);
    await warm(generator, job, values.quick ? LUKEWARM : WARM);
    const durationMs = Number(values.seconds) * 1_000;
    const shapes: Readonly<Record<Sample['load'], Job['shape']>> = {
      full: { kind: 'closed', connections: CONNECTIONS, durationMs },
      rate: { kind: 'open', perSecond: Number(values.rate), durationMs },
    };
    const samples: Sample[] = [];
    for (let round = 1; round <= Number(values.rounds); round += 1)
      for (const load of LOADS)
        samples.push({
          ...(await sampleOf(generator, job(shapes[load]), target)),
          rig: rig.name,
          protocol: rig.protocol,
          round,
          load,
        });
    return samples;
  } finally {
    await target.stop();
  }
}

async function sampleOf(generator: Generator, job: Job, { pid }: Target) {
  const before = pid === null ? 0 : cpuMicros(pid);
  const { calls, errors, firstError, elapsedMs, latency, generatorLoad } = await generator.run(job);
  if (calls === 0) throw new Error(`no call succeeded: ${firstError}`);
  const rounded = (value: number) => Math.round(value * 1_000) / 1_000;
  return {
    calls,
    errors,
    callsPerSecond: Math.round((calls / elapsedMs) * 1_000),
    cpuMicrosPerCall: pid === null ? null : Math.round((cpuMicros(pid) - before) / calls),
    residentMiB: pid === null ? null : Math.round(residentBytes(pid) / (1024 * 1024)),
    p50Ms: rounded(latency.p50),
    p90Ms: rounded(latency.p90),
    p99Ms: rounded(latency.p99),
    generatorLoad: rounded(generatorLoad),
  };
}

type Machine = ReturnType<typeof machineFacts>;

function machineFacts() {
  const [cpu] = cpus();
  const said = (file: string, args: readonly string[]) => {
    try {
      return execFileSync(file, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
    } catch {
      return null;
    }
  };
  return {
    at: new Date().toISOString(),
    cpu: cpu?.model.trim() ?? 'unknown',
    cores: cpus().length,
    memoryMiB: Math.round(totalmem() / (1024 * 1024)),
    kernel: release(),
    node: process.version,
    python: said('python3', ['--version']),
    commit: said('git', ['rev-parse', 'HEAD']),
    loadBefore: loadavg()[0] ?? 0,
    rounds: Number(values.rounds),
    seconds: Number(values.seconds),
    rate: Number(values.rate),
    connections: CONNECTIONS,
  };
}

function reportOf(rigs: readonly Rig[], samples: readonly Sample[], machine: Machine, leftOut: object): string {
  const show = (value: number | null, digits = 0) => (value === null ? '–' : value.toFixed(digits));
  const tables = (['chat', 'tools'] as const).map((protocol) => {
    const rows = rigs
      .filter((rig) => rig.protocol === protocol && samples.some((sample) => sample.rig === rig.name))
      .map((rig) => {
        const of = (
          load: Sample['load'],
          column: 'callsPerSecond' | 'cpuMicrosPerCall' | 'p50Ms' | 'p99Ms' | 'residentMiB',
        ) => median(samples.filter((each) => each.rig === rig.name && each.load === load).map((each) => each[column]));
        const errors = samples.filter((each) => each.rig === rig.name).reduce((sum, each) => sum + each.errors, 0);
        return [
          `${rig.title} (${rig.name})`,
          show(of('full', 'callsPerSecond')),
          show(of('full', 'cpuMicrosPerCall')),
          show(of('rate', 'cpuMicrosPerCall')),
          show(of('rate', 'p50Ms'), 2),
          show(of('rate', 'p99Ms'), 2),
          show(of('full', 'residentMiB')),
          String(errors),
        ];
      });
    const rate = `${machine.rate}/s`;
    const head = ['gateway', 'calls/s', 'CPU µs a call', `at ${rate}`, `p50 ms at ${rate}`, 'p99 ms', 'MiB', 'errors'];
    return `## ${protocol}\n\n${table(head, rows)}\n`;
  });
  const left = Object.keys(leftOut);
  const what = `${machine.at}, ${machine.cores} × ${machine.cpu}, ${machine.memoryMiB} MiB, Node ${machine.node}, load before ${machine.loadBefore.toFixed(1)}, medians of ${machine.rounds} rounds of ${machine.seconds} s`;
  return `${what}\n\n${tables.join('\n')}${left.length === 0 ? '' : `\nLeft out (left-out.json says why): ${left.join(', ')}\n`}`;
}
