import { cpus, loadavg } from 'node:os';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { startGenerator, type Generator } from './generator.ts';
import type { Job } from './load/job.ts';
import { FULL, QUICK, SMALL_CONNECTIONS, type Plan } from './plan.ts';
import { announcedPort, cpuMicros, startProgram } from './program.ts';
import { median, table } from './report.ts';
import type { Target, TargetKind } from './targets.ts';
import { LUKEWARM, WARM, warm } from './warm.ts';

/** One kind of request, measured at saturation and at a fixed rate. */
export interface Scenario {
  readonly title: string;
  readonly job: (target: Target, shape: Job['shape']) => Job;
  readonly perSecond: number;
}

interface Comparison {
  /** Printed for --help. */
  readonly help: string;
  /** The reference comes first. */
  readonly targets: readonly TargetKind[];
  readonly scenarios: readonly Scenario[];
}

interface Sample {
  readonly callsPerSecond: number;
  readonly cpu: number;
  readonly cpuAtRate: number;
  /** Milliseconds, at the fixed rate. */
  readonly p50: number;
  readonly p99: number;
}

interface Running {
  readonly kind: TargetKind;
  readonly target: Target;
  /** By scenario, then by round. */
  readonly samples: readonly Sample[][];
}

/** Measures each target in each round, one after the other, and prints a table with medians for each scenario. */
export async function compare({ help, targets, scenarios }: Comparison): Promise<void> {
  const { values } = parseArgs({ options: { quick: { type: 'boolean' }, help: { type: 'boolean' } } });
  if (values.help) return void process.stdout.write(help);
  const plan = values.quick ? QUICK : FULL;
  const loadBefore = loadavg()[0] ?? 0;
  const upstream = startProgram([fileURLToPath(new URL('upstream/main.ts', import.meta.url))]);
  const generator = startGenerator();
  const running: Running[] = [];
  try {
    const upstreamPort = await announcedPort(upstream);
    for (const kind of targets) {
      const missing = kind.missing?.();
      if (missing) throw new Error(`${kind.name}: ${missing}`);
      const target = await kind.start(upstreamPort);
      running.push({ kind, target, samples: scenarios.map(() => []) });
      for (const { job } of scenarios)
        await warm(generator, (shape) => job(target, shape), values.quick ? LUKEWARM : WARM);
    }
    for (let round = 0; round < plan.rounds; round++) {
      process.stderr.write(`round ${round + 1} of ${plan.rounds}\n`);
      for (const [index, scenario] of scenarios.entries())
        for (let turn = 0; turn < running.length; turn++) {
          // Each round begins with another target, so that no target always has the same place.
          const { target, samples } = running[(turn + round) % running.length]!;
          samples[index]!.push(await measured(generator, target, scenario, plan));
        }
    }
    const [cpu] = cpus();
    const machine = `${cpus().length} × ${cpu?.model.trim() ?? 'unknown CPU'}, Node ${process.version}`;
    process.stdout.write(
      `${new Date().toISOString()}, ${machine}, load before ${loadBefore.toFixed(1)}, medians of ${plan.rounds} rounds\n\n` +
        scenarios.map((scenario, index) => reportOf(scenario, index, running)).join('\n'),
    );
  } finally {
    for (const { target } of running.toReversed()) await target.stop();
    generator.stop();
    await upstream.stop();
  }
}

const closed = (durationMs: number): Job['shape'] => ({ kind: 'closed', connections: SMALL_CONNECTIONS, durationMs });

async function measured(generator: Generator, target: Target, scenario: Scenario, plan: Plan): Promise<Sample> {
  const { job, perSecond } = scenario;
  const full = await calls(generator, job(target, closed(plan.smallMs)), target);
  const paced = await calls(generator, job(target, { kind: 'open', perSecond, durationMs: plan.openMs }), target);
  return {
    callsPerSecond: full.perSecond,
    cpu: full.cpu,
    cpuAtRate: paced.cpu,
    p50: paced.p50,
    p99: paced.p99,
  };
}

/** Throws if a call fails, because a target that can't do the work must not be measured. */
async function calls(generator: Generator, job: Job, target?: Target) {
  const read = () => (target?.pid == null ? 0 : cpuMicros(target.pid));
  const before = read();
  const { calls: count, errors, firstError, elapsedMs, latency } = await generator.run(job);
  if (errors > 0 || count === 0) throw new Error(`${errors} of ${errors + count} calls failed: ${firstError}`);
  return {
    perSecond: (count / elapsedMs) * 1000,
    cpu: (read() - before) / count,
    p50: latency.p50,
    p99: latency.p99,
  };
}

function reportOf({ title, perSecond }: Scenario, index: number, running: readonly Running[]): string {
  const [reference] = running;
  const rows = running.map((one) => {
    const samples = one.samples[index]!;
    const of = (pick: (sample: Sample) => number, digits: number) => median(samples.map(pick))!.toFixed(digits);
    // Compares within each round, because the machine's other load differs more between rounds than within one.
    const ratio = (pick: (sample: Sample) => number) =>
      `${median(samples.map((sample, round) => pick(sample) / pick(reference!.samples[index]![round]!)))!.toFixed(2)}×`;
    return [
      one.kind.title,
      of(({ callsPerSecond }) => callsPerSecond, 0),
      of(({ cpu }) => cpu, 1),
      ratio(({ cpu }) => cpu),
      of(({ cpuAtRate }) => cpuAtRate, 0),
      ratio(({ cpuAtRate }) => cpuAtRate),
      of(({ p50 }) => p50, 2),
      of(({ p99 }) => p99, 2),
    ];
  });
  const head = ['calls/s', 'CPU µs/call', '÷ ref.', `CPU µs/call at ${perSecond}/s`, '÷ ref.', 'p50 ms', 'p99 ms'];
  return `${table([title, ...head], rows)}\n`;
}
