import type { MemorySample, RoundSamples, Sample } from './measure.ts';
import { FIRST_BYTE_PER_SECOND, OPEN_PER_SECOND, PACED_STREAMS } from './plan.ts';
import { BURST_EVENTS, PACED_EVENTS } from './upstream/replies.ts';

export interface TargetSamples {
  readonly name: string;
  readonly title: string;
  /** Why the target was not measured, or only partly. */
  failure: string | null;
  readonly rounds: RoundSamples[];
  readonly memory: MemorySample[];
}

export interface Run {
  readonly startedAt: string;
  readonly machine: string;
  readonly quick: boolean;
  /** One-minute load average of the machine before the run. */
  readonly loadBefore: number;
  readonly tookS: number;
  readonly targets: readonly TargetSamples[];
}

/** The figures of one target: medians over all rounds, null without values. Times are in milliseconds. */
export interface Figures {
  readonly name: string;
  readonly title: string;
  readonly callsPerSecond: number | null;
  readonly cpuPerCall: number | null;
  readonly cpuPerCallAtRate: number | null;
  /** The absolute value, not the difference. On a quiet machine it is under 2 ms for `direct`. */
  readonly p99: number | null;
  readonly addedP50: number | null;
  readonly addedP99: number | null;
  readonly addedFirstByteP50: number | null;
  readonly cpuPerBurstEvent: number | null;
  readonly cpuPerPacedEvent: number | null;
  readonly kibPerStream: number | null;
  readonly rssMib: number | null;
  readonly heldP99: number | null;
  readonly loopDelayMs: number | null;
  readonly errors: number;
}

export function median(values: readonly (number | null)[]): number | null {
  const sorted = values
    .filter((value) => value !== null && Number.isFinite(value))
    .toSorted((a, b) => a! - b!) as number[];
  if (sorted.length === 0) return null;
  const middle = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

const perCall = (sample: Sample, events = 1) =>
  sample.cpuMicros === null ? null : sample.cpuMicros / (sample.calls * events);

/** Adds up short samples of all rounds, because the median of such noisy samples would be inaccurate. */
function total(samples: readonly (Sample | null)[], events = 1): number | null {
  let cpu = 0;
  let calls = 0;
  for (const sample of samples) {
    if (!sample) continue;
    if (sample.cpuMicros === null) return null;
    cpu += sample.cpuMicros;
    calls += sample.calls * events;
  }
  return calls > 0 ? cpu / calls : null;
}

/** Computes the figures of every target. "added" figures are differences to `direct` in the same round. */
export function figuresOf(run: Run): readonly Figures[] {
  const direct = run.targets.find((target) => target.name === 'direct')?.rounds ?? [];
  return run.targets.map(({ name, title, rounds, memory }) => {
    const added = (pick: (round: RoundSamples) => number) =>
      name === 'direct'
        ? null
        : median(rounds.map((round, index) => (direct[index] ? pick(round) - pick(direct[index]) : null)));
    return {
      name,
      title,
      callsPerSecond: median(rounds.map(({ small }) => (small.calls / small.elapsedMs) * 1000)),
      cpuPerCall: median(rounds.map(({ small }) => perCall(small))),
      cpuPerCallAtRate: total(rounds.map(({ open }) => open)),
      p99: median(rounds.map(({ open }) => open.latency.p99)),
      addedP50: added(({ open }) => open.latency.p50),
      addedP99: added(({ open }) => open.latency.p99),
      addedFirstByteP50: added(({ firstByte }) => firstByte.firstByte.p50),
      cpuPerBurstEvent: median(rounds.map(({ burst }) => perCall(burst, BURST_EVENTS))),
      cpuPerPacedEvent: total(
        rounds.map(({ paced }) => paced),
        PACED_EVENTS,
      ),
      kibPerStream: median(memory.map(({ heldBytes, baseBytes, streams }) => (heldBytes - baseBytes) / streams / 1024)),
      rssMib: median(memory.map(({ idleBytes }) => idleBytes / 1_048_576)),
      heldP99: median(memory.map(({ probe }) => probe.latency.p99)),
      loopDelayMs: median(memory.map(({ loopDelayMs }) => loopDelayMs)),
      errors: rounds
        .flatMap((round) => [round.small, round.open, round.firstByte, round.burst, round.paced])
        .reduce((sum, sample) => sum + (sample?.errors ?? 0), 0),
    };
  });
}

const show = (value: number | null, digits: number, sign = '') =>
  value === null ? '–' : `${value > 0 ? sign : ''}${value.toFixed(digits)}`;
export const table = (head: readonly string[], rows: readonly (readonly string[])[]) =>
  [head, head.map((_cell, index) => (index === 0 ? '---' : '---:')), ...rows]
    .map((row) => `| ${row.join(' | ')} |`)
    .join('\n');

/** The whole report as Markdown. */
export function reportOf(run: Run): string {
  const figures = figuresOf(run);
  const parts = [
    `# Bench of ${run.startedAt.slice(0, 16).replace('T', ' ')}${run.quick ? ' (quick)' : ''}`,
    `${run.machine}. \`npm run bench${run.quick ? ' -- --quick' : ''}\`, ${Math.round(run.tookS)} s, load before ${run.loadBefore.toFixed(2)}. ` +
      'Rounds interleaved; medians over rounds. CPU is that of the gateway process with all its threads, without databases beside it.',
    figuresTable(figures),
    `Added: to the upstream called directly in the same round, at ${OPEN_PER_SECOND} calls/s, ${FIRST_BYTE_PER_SECOND} streams/s for the first byte. ` +
      `Burst: ${BURST_EVENTS} events a stream at once, an HTTP chunk each. Paced: ${PACED_STREAMS} streams with 50 events/s each, opening and settling included.`,
    '## Ratios in this run',
    ratioTable(figures),
    '## Budgets (tollgate, embedded)',
    budgetTable(figures),
    '## Notes',
    notesOf(run, figures)
      .map((note) => `- ${note}`)
      .join('\n'),
  ];
  return `${parts.join('\n\n')}\n`;
}

function figuresTable(figures: readonly Figures[]): string {
  return table(
    [
      'target',
      'calls/s',
      'CPU µs/call',
      `CPU µs/call at ${OPEN_PER_SECOND}/s`,
      'added p50 ms',
      'added p99 ms',
      'added first byte ms',
      'burst CPU µs/event',
      'paced CPU µs/event',
      'KiB/open stream',
      'RSS MiB',
      'p99 ms beside open streams',
      'loop p99 ms',
    ],
    figures.map((row) => [
      row.title,
      show(row.callsPerSecond, 0),
      show(row.cpuPerCall, 1),
      show(row.cpuPerCallAtRate, 0),
      show(row.addedP50, 2, '+'),
      show(row.addedP99, 2, '+'),
      show(row.addedFirstByteP50, 2, '+'),
      show(row.cpuPerBurstEvent, 2),
      show(row.cpuPerPacedEvent, 1),
      show(row.kibPerStream, 1),
      show(row.rssMib, 0),
      show(row.heldP99, 1),
      show(row.loopDelayMs, 1),
    ]),
  );
}

const ratio = (one: number | null | undefined, other: number | null | undefined) =>
  one && other && other > 0 ? one / other : null;

function ratioTable(figures: readonly Figures[]): string {
  const of = (name: string) => figures.find((row) => row.name === name);
  const reference = of('fastify');
  const portkey = of('portkey');
  const times = (value: number | null) => (value === null ? '–' : `${value.toFixed(2)}×`);
  return table(
    [
      'target',
      'call ÷ Fastify',
      'Portkey ÷ call',
      'burst ÷ Fastify',
      'Portkey ÷ burst',
      'paced ÷ Fastify',
      'Portkey ÷ paced',
    ],
    figures
      .filter((row) => row.cpuPerCall !== null)
      .map((row) => [
        row.title,
        times(ratio(row.cpuPerCall, reference?.cpuPerCall)),
        times(ratio(portkey?.cpuPerCall, row.cpuPerCall)),
        times(ratio(row.cpuPerBurstEvent, reference?.cpuPerBurstEvent)),
        times(ratio(portkey?.cpuPerBurstEvent, row.cpuPerBurstEvent)),
        times(ratio(row.cpuPerPacedEvent, reference?.cpuPerPacedEvent)),
        times(ratio(portkey?.cpuPerPacedEvent, row.cpuPerPacedEvent)),
      ]),
  );
}

interface Budget {
  readonly what: string;
  readonly value: number | null;
  /** null: there is only a goal. */
  readonly most: number | null;
  readonly goal: number;
  readonly unit: string;
  /** The machine's other load makes the figure useless. */
  readonly noisy?: boolean;
}

function budgetTable(figures: readonly Figures[]): string {
  const ours = figures.find((row) => row.name === 'tollgate');
  if (!ours || ours.cpuPerCall === null) return 'tollgate was not measured.';
  const reference = figures.find((row) => row.name === 'fastify');
  const portkey = figures.find((row) => row.name === 'portkey');
  const tunnel = figures.find((row) => row.name === 'tollgate-tunnel');
  const noisy = isNoisy(figures);
  const budgets: readonly Budget[] = [
    {
      what: 'CPU per call ÷ Fastify passthrough',
      value: ratio(ours.cpuPerCall, reference?.cpuPerCall),
      most: 1.8,
      goal: 1.3,
      unit: '×',
    },
    {
      what: 'CPU per burst event ÷ Fastify passthrough',
      value: ratio(ours.cpuPerBurstEvent, reference?.cpuPerBurstEvent),
      most: 1.5,
      goal: 1.1,
      unit: '×',
    },
    { what: `added p50 at ${OPEN_PER_SECOND}/s`, value: ours.addedP50, most: 0.8, goal: 0.4, unit: ' ms', noisy },
    { what: `added p99 at ${OPEN_PER_SECOND}/s`, value: ours.addedP99, most: 5, goal: 2, unit: ' ms', noisy },
    {
      what: 'CPU per call ÷ Portkey',
      value: ratio(ours.cpuPerCall, portkey?.cpuPerCall),
      most: null,
      goal: 0.14,
      unit: '×',
    },
    {
      what: 'CPU per burst event ÷ Portkey',
      value: ratio(ours.cpuPerBurstEvent, portkey?.cpuPerBurstEvent),
      most: null,
      goal: 0.16,
      unit: '×',
    },
    {
      what: 'CPU per paced event ÷ Portkey',
      value: ratio(ours.cpuPerPacedEvent, portkey?.cpuPerPacedEvent),
      most: null,
      goal: 0.5,
      unit: '×',
    },
    {
      what: "CPU per call through a provider's tunnel ÷ straight to it",
      value: ratio(tunnel?.cpuPerCall, ours.cpuPerCall),
      most: 2.5,
      goal: 1.8,
      unit: '×',
    },
    {
      what: "CPU per burst event through a provider's tunnel ÷ straight to it",
      value: ratio(tunnel?.cpuPerBurstEvent, ours.cpuPerBurstEvent),
      most: 2.5,
      goal: 1.8,
      unit: '×',
    },
    {
      what: 'calls/s straight to a provider ÷ through its tunnel',
      value: ratio(ours.callsPerSecond, tunnel?.callsPerSecond),
      most: 2.5,
      goal: 1.8,
      unit: '×',
    },
    { what: 'memory of an open stream', value: ours.kibPerStream, most: 48, goal: 32, unit: ' KiB' },
    { what: 'event loop delay p99 beside open streams', value: ours.loopDelayMs, most: 20, goal: 20, unit: ' ms' },
  ];
  return table(
    ['what', 'measured', 'budget', 'goal', ''],
    budgets.map((budget) => {
      const { what, value, most, goal, unit } = budget;
      return [
        what,
        value === null ? '–' : `${value.toFixed(2)}${unit}`,
        most === null ? '–' : `≤ ${most}${unit}`,
        `≤ ${goal}${unit}`,
        verdict(budget),
      ];
    }),
  );
}

/** Without a gateway, one in a hundred replies takes this long only if other programs use the cores. */
const DIRECT_P99_MS = 3;
const isNoisy = (figures: readonly Figures[]) =>
  (figures.find((row) => row.name === 'direct')?.p99 ?? 0) > DIRECT_P99_MS;

function verdict({ value, most, goal, noisy }: Budget): string {
  if (value === null) return 'not measured';
  if (noisy) return 'machine too noisy to tell';
  if (value <= goal) return 'goal reached';
  if (most === null) return 'goal not reached';
  return value <= most ? 'within budget' : '**missed**';
}

/** Above this share of a core, the load generator was the bottleneck, not the target. */
const GENERATOR_LIMIT = 0.9;

function notesOf(run: Run, figures: readonly Figures[]): string[] {
  const notes: string[] = [];
  for (const target of run.targets) {
    if (target.failure) notes.push(`**${target.title}**: ${target.failure}`);
    for (const phase of ['small', 'burst'] as const) {
      const load = median(target.rounds.map((round) => round[phase].generatorLoad));
      if (load !== null && load > GENERATOR_LIMIT)
        notes.push(
          `${target.title}, ${phase}: the load generator used ${(load * 100).toFixed(0)} % of a core and was the limit; its calls/s are a floor, CPU per call holds.`,
        );
    }
  }
  for (const row of figures) if (row.errors > 0) notes.push(`**${row.title}: ${row.errors} calls failed.**`);
  const direct = figures.find((row) => row.name === 'direct')?.p99 ?? null;
  if (isNoisy(figures))
    notes.push(
      `Others used the machine: p99 of the upstream itself was ${show(direct, 1)} ms at ${OPEN_PER_SECOND} calls/s. Added latencies say little; ratios of CPU hold.`,
    );
  notes.push('CPU of the fixed-rate and paced columns is summed over rounds, since each sample is short.');
  return notes;
}
