/**
 * Shows where the CPU time goes: runs V8's sampling profiler on one target under one load, and lists the functions of
 * each thread by self time. See `--help`.
 */
import { mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { allocationLines, type AllocationNode } from './allocation-report.ts';
import { startGenerator } from './generator.ts';
import { A2A_TARGETS, BATCH_TARGETS, batchJobFor, messageJobFor } from './route-targets.ts';
import { HOPS } from './hops.ts';
import type { Job } from './load/job.ts';
import { MCP_TARGETS, mcpJobFor } from './mcp-targets.ts';
import { jobFor } from './measure.ts';
import { BURST_CONNECTIONS, OPEN_PER_SECOND, SMALL_CONNECTIONS } from './plan.ts';
import { announcedPort, cpuByThread, cpuMicros, startProgram } from './program.ts';
import { TARGETS, type Target } from './targets.ts';
import { TOOLS } from './upstream/mcp-replies.ts';
import { BURST_EVENTS, MODELS } from './upstream/replies.ts';
import { WARM, warm } from './warm.ts';

const OTHERS = [...HOPS, ...MCP_TARGETS, ...A2A_TARGETS, ...BATCH_TARGETS];

const HELP = `node bench/profile.ts [--target tollgate] [--load small|tagged|burst|rate|tool|tool-large|tool-rate|message|task|batch] [--seconds 5] [--top 40] [--allocations [--promoted]] [--node=ARGS]
  small  ${SMALL_CONNECTIONS} connections, one call after the other
  tagged the same with three tags
  burst  ${BURST_CONNECTIONS} connections, streams of ${BURST_EVENTS} events
  rate   small calls, ${OPEN_PER_SECOND} a second
  tool, tool-large, tool-rate   the same of MCP tools, for targets of bench/mcp.ts
  message, task, batch   those of bench/a2a.ts and bench/batch.ts
Targets are those of the bench, and ${OTHERS.map(({ name }) => name).join(', ')}. With --allocations it lists the bytes that functions of the main thread allocate, instead of their CPU time, and those of
each part of a call; with --promoted only those that outlive a scavenge, which full collections have to find. --node gives arguments of Node to the target, such as --no-turbo-inlining. The profiles stay in bench/results/profile/ for Chrome's developer tools.
`;

type Shape = Job['shape'];

interface Load {
  readonly job: (target: Target, shape: Shape) => Job;
  readonly shape: (durationMs: number) => Shape;
  /** The number of units of work in one call, such as its events. Costs are per unit. */
  readonly units: number;
}

const closed = (connections: number) => (durationMs: number) => ({ kind: 'closed', connections, durationMs }) as const;
const atRate = (durationMs: number) => ({ kind: 'open', perSecond: OPEN_PER_SECOND, durationMs }) as const;
const chat = (model: string) => (target: Target, shape: Shape) => jobFor(target, model, shape);
const THREE_TAGS = 'team=search, feature=summary, tier=gold';
const tool = (name: string) => (target: Target, shape: Shape) => mcpJobFor(target, name, shape);

const LOADS: Readonly<Record<string, Load>> = {
  small: { job: chat(MODELS.small), shape: closed(SMALL_CONNECTIONS), units: 1 },
  tagged: {
    job: (target, shape) =>
      jobFor({ ...target, headers: { ...target.headers, 'x-tollgate-tags': THREE_TAGS } }, MODELS.small, shape),
    shape: closed(SMALL_CONNECTIONS),
    units: 1,
  },
  burst: { job: chat(MODELS.burst), shape: closed(BURST_CONNECTIONS), units: BURST_EVENTS },
  rate: { job: chat(MODELS.small), shape: atRate, units: 1 },
  tool: { job: tool(TOOLS.small), shape: closed(SMALL_CONNECTIONS), units: 1 },
  'tool-large': { job: tool(TOOLS.large), shape: closed(SMALL_CONNECTIONS), units: 1 },
  'tool-rate': { job: tool(TOOLS.small), shape: atRate, units: 1 },
  message: {
    job: (target, shape) => messageJobFor(target, 'message', shape),
    shape: closed(SMALL_CONNECTIONS),
    units: 1,
  },
  task: { job: (target, shape) => messageJobFor(target, 'task', shape), shape: closed(SMALL_CONNECTIONS), units: 1 },
  batch: { job: batchJobFor, shape: closed(SMALL_CONNECTIONS), units: 1 },
};

interface CpuProfile {
  readonly nodes: readonly {
    readonly id: number;
    readonly callFrame: { readonly functionName: string; readonly url: string; readonly lineNumber: number };
  }[];
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
}

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

/**
 * The time of the load, in milliseconds before the end of the process. Everything earlier, mainly loading modules,
 * isn't counted.
 */
interface Window {
  readonly fromMs: number;
  readonly toMs: number;
}

/** The functions of one thread by self time without idle time, in microseconds per unit of work. */
function topOf(profile: CpuProfile, window: Window, units: number, count: number): string[] {
  const own = new Map<string, number>();
  const names = new Map(
    profile.nodes.map(({ id, callFrame }) => [
      id,
      `${callFrame.functionName || '(anonymous)'}  ${callFrame.url.replace(/^.*\/(?=(?:src|bench|node_modules)\/)/, '')}:${callFrame.lineNumber + 1}`,
    ]),
  );
  let beforeEnd = profile.timeDeltas.reduce((sum, delta) => sum + delta, 0) / 1000;
  for (const [index, id] of profile.samples.entries()) {
    beforeEnd -= (profile.timeDeltas[index] ?? 0) / 1000;
    if (beforeEnd > window.fromMs || beforeEnd < window.toMs) continue;
    const name = names.get(id) ?? '';
    if (!/^\((?:idle|program|root)\)/.test(name))
      own.set(name, (own.get(name) ?? 0) + (profile.timeDeltas[index] ?? 0));
  }
  const rows = [...own].toSorted((a, b) => b[1] - a[1]);
  const all = rows.reduce((sum, [, time]) => sum + time, 0);
  return [
    `  all JavaScript ${(all / units).toFixed(1)} µs`,
    ...rows
      .slice(0, count)
      .map(
        ([name, time]) =>
          `  ${(time / units).toFixed(2).padStart(7)}  ${((100 * time) / all).toFixed(1).padStart(5)} %  ${name}`,
      ),
  ];
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      target: { type: 'string', default: 'tollgate' },
      load: { type: 'string', default: 'small' },
      seconds: { type: 'string', default: '5' },
      top: { type: 'string', default: '40' },
      allocations: { type: 'boolean', default: false },
      promoted: { type: 'boolean', default: false },
      node: { type: 'string', default: '' },
      help: { type: 'boolean' },
    },
  });
  const kind = [...TARGETS, ...OTHERS].find(({ name }) => name === values.target);
  const load = Object.hasOwn(LOADS, values.load) ? LOADS[values.load] : null;
  if (values.help || !kind || !load) return void process.stdout.write(HELP);
  const folder = here('results/profile');
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });

  const upstream = startProgram([here('upstream/main.ts')]);
  const generator = startGenerator();
  try {
    const args = values.allocations
      ? [
          '--import',
          new URL(`targets/sample-allocations.ts${values.promoted ? '?promoted' : ''}`, import.meta.url).href,
        ]
      : ['--cpu-prof', `--cpu-prof-dir=${folder}`];
    args.push(...values.node.split(' ').filter((arg) => arg !== ''));
    const target = await kind.start(await announcedPort(upstream), args);
    if (target.pid === null) throw new Error(`${kind.name} has no process of its own`);
    let units = 0;
    let begun = 0;
    let ended = 0;
    try {
      await warm(generator, (shape) => load.job(target, shape), WARM);
      if (values.allocations) process.kill(target.pid, 'SIGUSR2');
      begun = performance.now();
      const before = cpuMicros(target.pid);
      const threadsBefore = cpuByThread(target.pid);
      const result = await generator.run(load.job(target, load.shape(Number(values.seconds) * 1000)));
      ended = performance.now();
      if (values.allocations) {
        process.kill(target.pid, 'SIGUSR2');
        await pause(2_000);
      }
      units = result.calls * load.units;
      const used = (cpuMicros(target.pid) - before) / units;
      process.stdout.write(
        `${kind.title}, ${values.load}: ${result.calls} calls, ${result.errors} errors, ${used.toFixed(2)} CPU µs each (with the profiler, all threads)\n`,
      );
      for (const [name, { user, system }] of cpuByThread(target.pid)) {
        const { user: userBefore, system: systemBefore } = threadsBefore.get(name) ?? { user: 0, system: 0 };
        const [ofUser, ofSystem] = [(user - userBefore) / units, (system - systemBefore) / units];
        if (ofUser + ofSystem >= 0.01)
          process.stdout.write(`  thread ${name}: ${ofUser.toFixed(2)} µs user, ${ofSystem.toFixed(2)} µs system\n`);
      }
    } finally {
      await target.stop();
    }
    const stopped = performance.now();
    const window = { fromMs: stopped - begun, toMs: stopped - ended };
    if (values.allocations) {
      const { head } = JSON.parse(readFileSync(`${folder}/main.heapprofile`, 'utf8')) as { head: AllocationNode };
      process.stdout.write(`${allocationLines(head, units, Number(values.top)).join('\n')}\n`);
      return;
    }
    for (const file of readdirSync(folder))
      process.stdout.write(
        `${file}\n${topOf(JSON.parse(readFileSync(`${folder}/${file}`, 'utf8')) as CpuProfile, window, units, Number(values.top)).join('\n')}\n`,
      );
  } finally {
    generator.stop();
    await upstream.stop();
  }
}

await main();
