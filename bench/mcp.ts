/**
 * `node bench/mcp.ts`: the cost of a call of an MCP tool in tollgate, compared with passthroughs and a proxy built with
 * the official SDK. See `--help`.
 */
import { cpus, loadavg } from 'node:os';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { startGenerator, type Generator } from './generator.ts';
import type { Job } from './load/job.ts';
import { MCP_REFERENCE, MCP_TARGETS, mcpJobFor } from './mcp-targets.ts';
import { FULL, OPEN_PER_SECOND, QUICK, SMALL_CONNECTIONS, type Plan } from './plan.ts';
import { announcedPort, cpuMicros, startProgram } from './program.ts';
import { median, table } from './report.ts';
import type { Target, TargetKind } from './targets.ts';
import { TOOLS } from './upstream/mcp-replies.ts';
import { LUKEWARM, WARM, warm, type Warmth } from './warm.ts';

const HELP = `node bench/mcp.ts [--quick] [--only mcp-direct,mcp-fastify,mcp-tollgate]

Measures tools/call of the modern revision through tollgate beside passthroughs, all on 127.0.0.1: calls a second at saturation, CPU of the gateway's
process, added latency at ${OPEN_PER_SECOND} calls a second. Rounds are interleaved, figures are medians.
  --quick   half a minute instead of two and a half; for orders of magnitude
  --only    some targets: ${MCP_TARGETS.map(({ name }) => name).join(', ')}
Profile one of them with "node bench/profile.ts --target mcp-tollgate --load tool".
`;

/** CPU time per call, relative to the reference. */
const BUDGET = { most: 2, goal: 1.4 };

interface Sample {
  readonly callsPerSecond: number;
  readonly errors: number;
  readonly generatorLoad: number;
  /** CPU microseconds of the gateway's process per call. null if there is no gateway. */
  readonly cpu: number | null;
  /** Milliseconds. */
  readonly p50: number;
  readonly p99: number;
}

/** Takes two and a half minutes with all targets. */
const PLAN: Plan = { ...FULL, smallMs: 1200, openMs: 1800 };

const LOADS = ['small', 'large', 'rate'] as const;
type Load = (typeof LOADS)[number];

interface Running {
  readonly kind: TargetKind;
  readonly target: Target;
  readonly samples: Readonly<Record<Load, Sample[]>>;
}

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const say = (text: string) => process.stderr.write(`${text}\n`);

const closed = (durationMs: number): Job['shape'] => ({ kind: 'closed', connections: SMALL_CONNECTIONS, durationMs });

const jobsOf = (plan: Plan): Readonly<Record<Load, readonly [tool: string, shape: Job['shape']]>> => ({
  small: [TOOLS.small, closed(plan.smallMs)],
  large: [TOOLS.large, closed(plan.smallMs)],
  rate: [TOOLS.small, { kind: 'open', perSecond: OPEN_PER_SECOND, durationMs: plan.openMs }],
});

async function measured(generator: Generator, target: Target, tool: string, shape: Job['shape']): Promise<Sample> {
  const read = () => (target.pid === null ? null : cpuMicros(target.pid));
  const before = read();
  const { calls, errors, firstError, elapsedMs, latency, generatorLoad } = await generator.run(
    mcpJobFor(target, tool, shape),
  );
  if (calls === 0) throw new Error(firstError);
  const after = read();
  const cpu = before === null || after === null ? null : (after - before) / calls;
  return { callsPerSecond: (calls / elapsedMs) * 1000, errors, generatorLoad, cpu, p50: latency.p50, p99: latency.p99 };
}

/** The first calls of a target. Throws when they fail: a target that cannot do the work is not measured. */
async function warmUp(generator: Generator, target: Target, warmth: Warmth): Promise<void> {
  for (const tool of Object.values(TOOLS)) await warm(generator, (shape) => mcpJobFor(target, tool, shape), warmth);
}

const number = (value: number | null, digits: number) =>
  value === null || !Number.isFinite(value) ? '–' : value.toFixed(digits);
const times = (value: number | null) => (value === null ? '–' : `${value.toFixed(2)}×`);

function reportOf(running: readonly Running[]): string {
  const reference = running.find(({ kind }) => kind.name === MCP_REFERENCE);
  const direct = running.find(({ kind }) => kind.name === 'mcp-direct');
  const of = ({ samples }: Running, load: Load, pick: (sample: Sample) => number | null) =>
    median(samples[load].map(pick));
  // Compares within each round, because the machine's other load differs more between rounds than within one.
  const beside = (
    { samples }: Running,
    load: Load,
    other: Running | undefined,
    compare: (sample: Sample, other: Sample) => number | null,
  ) =>
    median(
      samples[load].map((sample, round) =>
        other?.samples[load][round] ? compare(sample, other.samples[load][round]) : null,
      ),
    );
  const ratio = (one: Running, load: Load) =>
    beside(one, load, reference, (own, its) => (own.cpu === null || its.cpu === null ? null : own.cpu / its.cpu));
  const added = (one: Running, pick: (sample: Sample) => number) =>
    one === direct ? null : beside(one, 'rate', direct, (own, its) => pick(own) - pick(its));

  const rows = running.map((one) => [
    one.kind.title,
    number(
      of(one, 'small', ({ callsPerSecond }) => callsPerSecond),
      0,
    ),
    number(
      of(one, 'small', ({ cpu }) => cpu),
      1,
    ),
    times(ratio(one, 'small')),
    number(
      of(one, 'large', ({ callsPerSecond }) => callsPerSecond),
      0,
    ),
    number(
      of(one, 'large', ({ cpu }) => cpu),
      1,
    ),
    times(ratio(one, 'large')),
    number(
      of(one, 'rate', ({ cpu }) => cpu),
      0,
    ),
    times(ratio(one, 'rate')),
    number(
      added(one, ({ p50 }) => p50),
      2,
    ),
    number(
      added(one, ({ p99 }) => p99),
      2,
    ),
  ]);
  const head = [
    'calls/s',
    'CPU µs/call',
    '÷ ref.',
    '16 KiB: calls/s',
    'CPU µs/call',
    '÷ ref.',
    `CPU µs/call at ${OPEN_PER_SECOND}/s`,
    '÷ ref.',
  ];
  const all = running.flatMap(({ samples }) => Object.values(samples).flat());
  const errors = all.reduce((sum, sample) => sum + sample.errors, 0);
  const billed = running.find(({ kind }) => kind.name === 'mcp-tollgate');
  const share = billed && ratio(billed, 'small');
  return [
    table(['target', ...head, 'added p50 ms', 'added p99 ms'], rows),
    `Added: to the server called directly in the same round, at ${OPEN_PER_SECOND} calls/s.`,
    ...(share
      ? [
          `CPU per billed call ÷ reference: ${times(share)}, ${verdict(share)} (budget ${BUDGET.most}×, goal ${BUDGET.goal}×).`,
        ]
      : []),
    ...(errors > 0 ? [`**${errors} calls failed.**`] : []),
    ...(all.some(({ generatorLoad }) => generatorLoad > 0.9)
      ? ['The load generator used more than 0.9 of a core at times: calls/s are a floor then, CPU holds.']
      : []),
  ].join('\n\n');
}

function verdict(ratio: number): string {
  return ratio <= BUDGET.goal ? 'goal reached' : ratio <= BUDGET.most ? 'within budget' : '**missed**';
}

async function start(
  kinds: readonly TargetKind[],
  upstreamPort: number,
  generator: Generator,
  warmth: Warmth,
  running: Running[],
): Promise<void> {
  for (const kind of kinds) {
    const missing = kind.missing?.();
    if (missing) {
      say(`${kind.name}: not measured: ${missing}`);
      continue;
    }
    const target = await kind.start(upstreamPort);
    running.push({ kind, target, samples: { small: [], large: [], rate: [] } });
    await warmUp(generator, target, warmth);
  }
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: { quick: { type: 'boolean' }, only: { type: 'string' }, help: { type: 'boolean' } },
  });
  if (values.help) return void process.stdout.write(HELP);
  const only = values.only?.split(',');
  const kinds = MCP_TARGETS.filter(({ name }) => only?.includes(name) ?? true);
  const plan = values.quick ? QUICK : PLAN;
  const loadBefore = loadavg()[0] ?? 0;
  const upstream = startProgram([here('upstream/main.ts')]);
  const generator = startGenerator();
  const running: Running[] = [];
  try {
    await start(kinds, await announcedPort(upstream), generator, values.quick ? LUKEWARM : WARM, running);
    for (let round = 0; round < plan.rounds; round++) {
      say(`round ${round + 1} of ${plan.rounds}`);
      for (const load of LOADS)
        for (let turn = 0; turn < running.length; turn++) {
          // Each round begins with another target, so that no target always has the same place.
          const { target, samples } = running[(turn + round) % running.length]!;
          samples[load].push(await measured(generator, target, ...jobsOf(plan)[load]));
        }
    }
    const [cpu] = cpus();
    const machine = `${cpus().length} × ${cpu?.model.trim() ?? 'unknown CPU'}, Node ${process.version}`;
    process.stdout.write(
      `${new Date().toISOString()}, ${machine}, load before ${loadBefore.toFixed(1)}, medians of ${plan.rounds} rounds\n\n${reportOf(running)}\n`,
    );
  } finally {
    for (const { target } of running.toReversed()) await target.stop();
    generator.stop();
    await upstream.stop();
  }
}

await main();
