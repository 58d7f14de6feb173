/** What a call costs at the rates at which gateways run, and at full load, on one core and on two. See `--help`. */
import { spawnSync } from 'node:child_process';
import { closeSync, fdatasyncSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { startGenerator, type Generator } from './generator.ts';
import { installPeers } from './install-peers.ts';
import type { Job } from './load/job.ts';
import { MCP_TARGETS, mcpJobFor } from './mcp-targets.ts';
import { jobFor } from './measure.ts';
import { BURST_CONNECTIONS, SMALL_CONNECTIONS } from './plan.ts';
import { announcedPort, cpuMicros, residentBytes, startProgram } from './program.ts';
import { A2A_TARGETS, messageJobFor } from './route-targets.ts';
import { LATE, TARGETS, WORKERS, type Target, type TargetKind } from './targets.ts';
import { TOOLS } from './upstream/mcp-replies.ts';
import { BURST_EVENTS, MODELS } from './upstream/replies.ts';
import { WARM, warm } from './warm.ts';

const HELP = `node bench/rates.ts [--loads small,stream,burst,tool] [--rates 20,100,500,max] [--cores 1,2] [--rounds 3] [--seconds 4] [--pause 0]
                    [--before FOLDER] [--late] [--postgres] [--workers] [--peers] [--node 'ARGS']
  --loads     small: chat calls; stream: streams of 20 events at 50/s; burst: streams of ${BURST_EVENTS} events, as many as possible;
              tunnel, tunnel-burst: chat calls and bursts through a provider's proxy, whose CPU is not counted;
              tool: tools/call of MCP; message, task: SendMessage to an agent that answers with a message or a completed task
  --rates     calls a second, on schedule; max: as many as ${SMALL_CONNECTIONS} connections get
  --cores     1: the gateway has one core of its own, the upstream and the load another one. 2: all share both
  --pause     seconds without calls before each round
  --before    another checkout of tollgate, with its node_modules
  --late      also tollgate with ledger.flush = "50ms"
  --postgres  also tollgate on a PostgreSQL of its own (its CPU is not counted)
  --workers   also two workers of tollgate on a PostgreSQL of its own
  --peers     also the gateways that npm installs
  --node      arguments of Node for tollgate, such as flags of V8
The figures are medians over the rounds; every round measures each target once, and the others stand still meanwhile.
Every second round goes the other way, because what is measured later costs more at low rates. CPU is of all threads of the
gateway's process and of its workers; the main thread and the memory are those of the first process. "Added" is the latency beyond that of the upstream, called directly in the same round.
`;

const { values: flags } = parseArgs({
  options: {
    loads: { type: 'string', default: 'small,stream,burst,tool' },
    rates: { type: 'string', default: '20,100,500,max' },
    cores: { type: 'string', default: '1,2' },
    rounds: { type: 'string', default: '3' },
    seconds: { type: 'string', default: '4' },
    pause: { type: 'string', default: '0' },
    before: { type: 'string' },
    late: { type: 'boolean', default: false },
    postgres: { type: 'boolean', default: false },
    workers: { type: 'boolean', default: false },
    peers: { type: 'boolean', default: false },
    node: { type: 'string', default: '' },
    help: { type: 'boolean' },
  },
});

/** Calls of a measurement at a low rate: so many, even if that takes longer than `--seconds`. */
const CALLS_MIN = 200;
const STREAMS_PER_SECOND = 50;

interface Load {
  readonly direct: string;
  readonly reference: string;
  readonly gateway: string;
  /** Other targets, with `--postgres` and `--peers`. */
  readonly others: readonly string[];
  readonly job: (target: Target, shape: Job['shape']) => Job;
  /** The rates of the load; absent for those of `--rates`. */
  readonly rates?: readonly string[];
  /** What one call counts as. */
  readonly units?: number;
  readonly connections?: number;
}

const others = [
  ...(flags.late ? ['tollgate-late', ...(flags.postgres ? ['tollgate-postgres-late'] : [])] : []),
  ...(flags.postgres ? ['tollgate-postgres'] : []),
  ...(flags.workers ? ['tollgate-workers'] : []),
  ...(flags.peers ? ['portkey'] : []),
];
const chat = { direct: 'direct', reference: 'fastify', gateway: 'tollgate', others } as const;
const agent = (answer: 'message' | 'task'): Load => ({
  direct: 'direct',
  reference: 'a2a-fastify',
  gateway: 'a2a-tollgate',
  others: [],
  job: (target, shape) => messageJobFor(target, answer, shape),
});
const LOADS: Readonly<Record<string, Load>> = {
  small: { ...chat, job: (target, shape) => jobFor(target, MODELS.small, shape) },
  stream: {
    ...chat,
    job: (target, shape) => jobFor(target, MODELS.short, shape),
    rates: [String(STREAMS_PER_SECOND)],
  },
  burst: {
    ...chat,
    job: (target, shape) => jobFor(target, MODELS.burst, shape),
    rates: ['max'],
    units: BURST_EVENTS,
    connections: BURST_CONNECTIONS,
  },
  tunnel: {
    ...chat,
    gateway: 'tollgate-tunnel',
    others: [],
    job: (target, shape) => jobFor(target, MODELS.small, shape),
  },
  'tunnel-burst': {
    ...chat,
    gateway: 'tollgate-tunnel',
    others: [],
    job: (target, shape) => jobFor(target, MODELS.burst, shape),
    rates: ['max'],
    units: BURST_EVENTS,
    connections: BURST_CONNECTIONS,
  },
  tool: {
    direct: 'mcp-direct',
    reference: 'mcp-fastify',
    gateway: 'mcp-tollgate',
    others: flags.peers ? ['mcp-sdk'] : [],
    job: (target, shape) => mcpJobFor(target, TOOLS.small, shape),
  },
  message: agent('message'),
  task: agent('task'),
};

interface Cost {
  /** CPU microseconds per unit. */
  readonly cpu: number;
  readonly main: number;
  /** How often a thread of the process has waited for something, per call. */
  readonly waits: number;
  readonly p50: number;
  readonly p99: number;
  readonly firstByte: number;
  readonly calls: number;
  readonly perSecond: number;
}

const threadsOf = (pid: number): readonly number[] => readdirSync(`/proc/${pid}/task`).map(Number);

/** Sums a figure over the threads of a process. A thread that ends meanwhile is left out. */
function overThreads(pid: number, figure: (thread: number) => number): number {
  let sum = 0;
  for (const thread of threadsOf(pid)) {
    try {
      sum += figure(thread);
    } catch {
      // It has ended.
    }
  }
  return sum;
}

/** The process and those that it started, such as workers. */
const groupOf = (pid: number): readonly number[] => [
  pid,
  ...readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number),
];
const overGroup = (first: number, figure: (pid: number) => number) =>
  groupOf(first).reduce((sum, pid) => sum + figure(pid), 0);
const waitsIn = (pid: number) =>
  overThreads(pid, (thread) =>
    Number(/^voluntary_ctxt_switches:\s+(\d+)$/m.exec(readFileSync(`/proc/${pid}/task/${thread}/status`, 'utf8'))?.[1]),
  );
const waitsOf = (first: number) => overGroup(first, waitsIn);
const cpuOf = (first: number) => overGroup(first, (pid) => overThreads(pid, (thread) => cpuMicros(pid, thread)));

async function costOf(generator: Generator, { pid }: Target, job: Job, units: number): Promise<Cost> {
  const before = pid === null ? null : { cpu: cpuOf(pid), main: cpuMicros(pid, pid), waits: waitsOf(pid) };
  const { calls, errors, firstError, latency, firstByte, elapsedMs } = await generator.run(job);
  if (errors > 0) throw new Error(`${errors} calls failed: ${firstError}`);
  const since = (now: (of: number) => number, then: number | undefined) =>
    pid === null || then === undefined ? 0 : (now(pid) - then) / calls;
  return {
    cpu: since(cpuOf, before?.cpu) / units,
    main: since((of) => cpuMicros(of, of), before?.main) / units,
    waits: since(waitsOf, before?.waits),
    p50: latency.p50,
    p99: latency.p99,
    firstByte: firstByte.p50,
    calls,
    perSecond: (calls / elapsedMs) * 1000,
  };
}

function shapeOf(rate: string, { connections = SMALL_CONNECTIONS }: Load): Job['shape'] {
  const ms = Number(flags.seconds) * 1000;
  if (rate === 'max') return { kind: 'closed', connections, durationMs: ms };
  const perSecond = Number(rate);
  return { kind: 'open', perSecond, durationMs: Math.max(ms, (CALLS_MIN / perSecond) * 1000) };
}

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1]!;

/** Binds all threads of a process to cores. Threads that it starts later inherit them. */
function pin(pid: number, cores: string): void {
  const { status, error } = spawnSync('taskset', ['-acp', cores, String(pid)], { stdio: 'ignore' });
  if (error || status !== 0)
    throw new Error('taskset (of util-linux) is needed to measure on one core; --cores 2 does without');
}

/** Milliseconds in which a small write is on the disk of the temporary folder: the median of many. */
function flushMs(): number {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-flush-'));
  const file = openSync(join(folder, 'file'), 'w');
  const bytes = Buffer.alloc(4096, 1);
  const samples: number[] = [];
  for (let index = 0; index < 300; index++) {
    const begun = performance.now();
    writeSync(file, bytes);
    fdatasyncSync(file);
    samples.push(performance.now() - begun);
  }
  closeSync(file);
  rmSync(folder, { recursive: true });
  return median(samples);
}

interface Running {
  readonly title: string;
  readonly target: Target;
}

/** Time for a target to do what it has put off, before it is measured. */
const SETTLE_MS = 300;

/** Runs `measured` while all other targets stand still, so that none of them uses the core in the meantime. */
async function alone<T>(target: Target, running: readonly Running[], measured: () => Promise<T>): Promise<T> {
  const others = running.flatMap(({ target: { pid } }) => (pid === null || pid === target.pid ? [] : [pid]));
  for (const pid of others.flatMap(groupOf)) process.kill(pid, 'SIGSTOP');
  try {
    await pause(SETTLE_MS);
    return await measured();
  } finally {
    for (const pid of others.flatMap(groupOf)) process.kill(pid, 'SIGCONT');
  }
}

const kindOf = (name: string): TargetKind =>
  [...TARGETS, ...LATE, WORKERS, ...MCP_TARGETS, ...A2A_TARGETS].find((kind) => kind.name === name)!;

async function measure(cores: string, name: string, load: Load, upstreamPort: number, generator: Generator) {
  const running: Running[] = [];
  const start = async (title: string, kind: TargetKind, main?: string) => {
    const missing = kind.missing?.();
    if (missing) return void process.stderr.write(`${kind.title} is not measured: ${missing}\n`);
    const nodeArgs = title === 'tollgate' ? flags.node.split(' ').filter((one) => one !== '') : [];
    const target = await kind.start(upstreamPort, nodeArgs, main);
    running.push({ title, target });
    if (cores === '1' && target.pid !== null) for (const pid of groupOf(target.pid)) pin(pid, '0');
    if (target.pid !== null)
      await warm(generator, (shape) => load.job(target, shape), {
        calls: WARM.calls / (load.units ? 10 : 1),
        msMax: WARM.msMax,
      });
  };
  try {
    await start('upstream', kindOf(load.direct));
    await start('passthrough', kindOf(load.reference));
    if (flags.before !== undefined)
      await start('tollgate, before', kindOf(load.gateway), resolve(flags.before, 'bin/tollgate.mjs'));
    await start('tollgate', kindOf(load.gateway));
    for (const other of load.others) await start(other, kindOf(other));
    for (const rate of load.rates ?? flags.rates.split(',')) {
      const rounds: Cost[][] = [];
      for (let round = 0; round < Number(flags.rounds); round++) {
        process.stderr.write(`${cores} core${cores === '1' ? '' : 's'}, ${name}, ${rate}: round ${round + 1}\n`);
        await pause(Number(flags.pause) * 1000);
        const costs: Cost[] = [];
        for (const at of round % 2 === 0 ? running.keys() : [...running.keys()].reverse()) {
          const { target } = running[at]!;
          costs[at] = await alone(target, running, () =>
            costOf(generator, target, load.job(target, shapeOf(rate, load)), load.units ?? 1),
          );
        }
        rounds.push(costs);
      }
      for (const [at, { title, target }] of running.entries()) {
        if (target.pid === null) continue;
        const of = (figure: (own: Cost, direct: Cost, reference: Cost) => number) =>
          median(rounds.map((costs) => figure(costs[at]!, costs[0]!, costs[1]!)));
        const cells = [
          name,
          rate === 'max' ? `max: ${of((own) => own.perSecond).toFixed(0)}` : rate,
          title,
          of((own) => own.cpu).toFixed(load.units ? 2 : 0),
          `${of((own, _direct, reference) => own.cpu / reference.cpu).toFixed(2)}×`,
          of((own) => own.main).toFixed(load.units ? 2 : 0),
          of((own) => own.waits).toFixed(1),
          ...(rate === 'max'
            ? ['', '', '']
            : [
                of((own, direct) => own.p50 - direct.p50).toFixed(2),
                of((own, direct) => own.p99 - direct.p99).toFixed(2),
                of((own, direct) => own.firstByte - direct.firstByte).toFixed(2),
              ]),
          (residentBytes(target.pid) / 1024 / 1024).toFixed(0),
        ];
        console.log(`| ${cells.join(' | ')} |`);
      }
    }
  } finally {
    for (const { target } of running) await target.stop();
  }
}

async function main(): Promise<void> {
  if (flags.help) return void process.stdout.write(HELP);
  const names = flags.loads.split(',');
  const unknown = names.find((name) => !Object.hasOwn(LOADS, name));
  if (unknown !== undefined) throw new Error(`no load ${unknown}; there are ${Object.keys(LOADS).join(', ')}`);
  if (flags.peers) installPeers('@portkey-ai/gateway');
  for (const cores of flags.cores.split(',')) {
    const upstream = startProgram([new URL('upstream/main.ts', import.meta.url).pathname]);
    const generator = startGenerator();
    try {
      const port = await announcedPort(upstream);
      if (cores === '1') for (const pid of [upstream.pid, generator.pid]) pin(pid, '1');
      console.log(
        `\n${cores === '1' ? 'One core' : 'Two cores'}; a 4 KiB write with its flush takes ${flushMs().toFixed(2)} ms.\n`,
      );
      console.log(
        '| load | calls/s | target | CPU µs | ÷ passthrough | main thread µs | waits a call | added p50 ms | added p99 ms | added first byte ms | RSS MiB |',
      );
      console.log('| --- | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |');
      for (const name of names) await measure(cores, name, LOADS[name]!, port, generator);
    } finally {
      generator.stop();
      await upstream.stop();
    }
  }
}

await main();
