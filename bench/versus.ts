/**
 * The cost of a call for a gateway's main thread, compared with a passthrough and the gateway of another checkout in
 * one run. Every round measures each target once, for a moment. See `--help`.
 */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { startGenerator, type Generator } from './generator.ts';
import type { Job } from './load/job.ts';
import { A2A_TARGETS, messageJobFor } from './route-targets.ts';
import { MCP_TARGETS, mcpJobFor } from './mcp-targets.ts';
import { jobFor } from './measure.ts';
import { SMALL_CONNECTIONS } from './plan.ts';
import { announcedPort, cpuMicros, startProgram } from './program.ts';
import { TARGETS, type Target } from './targets.ts';
import { TOOLS } from './upstream/mcp-replies.ts';
import { MODELS } from './upstream/replies.ts';
import { WARM, warm } from './warm.ts';

const HELP = `node bench/versus.ts [--load small|tool|message|task] [--before FOLDER] [--rounds 15] [--ms 600] [--pause 0] [--rate N]
  small  chat calls at ${SMALL_CONNECTIONS} connections; tool  tools/call of MCP
  message, task  SendMessage of A2A to an agent that answers with a message, or with a completed task
  --before  another checkout of tollgate, with its node_modules
  --pause   seconds without calls before each round
  --rate    calls a second, on schedule; without it, as many as the target takes
`;

const agentLoad = (answer: 'message' | 'task') => ({
  reference: 'a2a-fastify',
  gateway: 'a2a-tollgate',
  job: (target: Target, shape: Job['shape']) => messageJobFor(target, answer, shape),
});

const LOADS = {
  small: {
    reference: 'fastify',
    gateway: 'tollgate',
    job: (target: Target, shape: Job['shape']) => jobFor(target, MODELS.small, shape),
  },
  tool: {
    reference: 'mcp-fastify',
    gateway: 'mcp-tollgate',
    job: (target: Target, shape: Job['shape']) => mcpJobFor(target, TOOLS.small, shape),
  },
  message: agentLoad('message'),
  task: agentLoad('task'),
} as const;

/** CPU microseconds that the main thread of a process has used. */
const mainThreadMicros = (pid: number): number => cpuMicros(pid, pid);

interface Cost {
  /** CPU microseconds per call. */
  readonly main: number;
  readonly all: number;
  /** How often the main thread waited for something, per call. */
  readonly waits: number;
  /** Median latency in milliseconds. */
  readonly p50: number;
}

/** How often a process's main thread has given up its processor to wait. */
const mainThreadWaits = (pid: number): number =>
  Number(/^voluntary_ctxt_switches:\s+(\d+)$/m.exec(readFileSync(`/proc/${pid}/task/${pid}/status`, 'utf8'))?.[1]);

async function costOf(generator: Generator, target: Target, job: Job): Promise<Cost> {
  const pid = target.pid!;
  const [main, all, waits] = [mainThreadMicros(pid), cpuMicros(pid), mainThreadWaits(pid)];
  const { calls, errors, firstError, latency } = await generator.run(job);
  if (errors > 0) throw new Error(firstError);
  return {
    main: (mainThreadMicros(pid) - main) / calls,
    all: (cpuMicros(pid) - all) / calls,
    waits: (mainThreadWaits(pid) - waits) / calls,
    p50: latency.p50,
  };
}

const closed = (durationMs: number) => ({ kind: 'closed', connections: SMALL_CONNECTIONS, durationMs }) as const;

/** A busy machine takes longer. */
const WARM_MS_MAX = 60_000;

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1]!;

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      load: { type: 'string', default: 'small' },
      before: { type: 'string' },
      rounds: { type: 'string', default: '15' },
      ms: { type: 'string', default: '600' },
      pause: { type: 'string', default: '0' },
      rate: { type: 'string' },
      help: { type: 'boolean' },
    },
  });
  const load = Object.hasOwn(LOADS, values.load) ? LOADS[values.load as keyof typeof LOADS] : null;
  if (values.help || load === null) return void process.stdout.write(HELP);
  const kindOf = (name: string) => [...TARGETS, ...MCP_TARGETS, ...A2A_TARGETS].find((kind) => kind.name === name)!;
  const upstream = startProgram([new URL('upstream/main.ts', import.meta.url).pathname]);
  const generator = startGenerator();
  const targets: [title: string, target: Target][] = [];
  try {
    const port = await announcedPort(upstream);
    targets.push(['passthrough', await kindOf(load.reference).start(port)]);
    if (values.before !== undefined)
      targets.push(['before', await kindOf(load.gateway).start(port, [], resolve(values.before, 'bin/tollgate.mjs'))]);
    targets.push(['now', await kindOf(load.gateway).start(port)]);
    const shape = (durationMs: number): Job['shape'] =>
      values.rate === undefined ? closed(durationMs) : { kind: 'open', perSecond: Number(values.rate), durationMs };
    const run = (target: Target, durationMs: number) => costOf(generator, target, load.job(target, shape(durationMs)));
    for (const [, target] of targets)
      await warm(generator, (shape) => load.job(target, shape), { ...WARM, msMax: WARM_MS_MAX });
    const rounds: Cost[][] = [];
    for (let round = 0; round < Number(values.rounds); round++) {
      const costs: Cost[] = [];
      await pause(Number(values.pause) * 1000);
      for (const [, target] of targets) costs.push(await run(target, Number(values.ms)));
      rounds.push(costs);
    }
    for (const [at, [title]] of targets.entries()) {
      const of = (measure: keyof Cost, beside: number | null) =>
        median(rounds.map((costs) => costs[at]![measure] / (beside === null ? 1 : costs[beside]![measure])));
      const toBefore =
        values.before !== undefined && at === 2
          ? `, ${of('main', 1).toFixed(3)}× before (all threads ${of('all', 1).toFixed(3)}×)`
          : '';
      process.stdout.write(
        `${title.padEnd(12)} main thread ${of('main', null).toFixed(1)} µs a call, ${of('main', 0).toFixed(2)}× the passthrough; all threads ${of('all', null).toFixed(1)} µs, ${of('all', 0).toFixed(2)}×${toBefore}; waits ${of('waits', null).toFixed(1)} a call, p50 ${of('p50', null).toFixed(2)} ms\n`,
      );
    }
  } finally {
    for (const [, target] of targets) await target.stop();
    generator.stop();
    await upstream.stop();
  }
}

await main();
