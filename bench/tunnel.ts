/**
 * `node bench/tunnel.ts`: a gateway's cost of each way to an upstream: direct, through a provider's tunnel, through
 * another gateway. See `--help`.
 */
import { cpus, loadavg } from 'node:os';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { startGenerator, type Generator } from './generator.ts';
import { HOPS, type Hop, type HopKind } from './hops.ts';
import { jobFor, warmUp } from './measure.ts';
import {
  BURST_CONNECTIONS,
  FULL,
  OPEN_PER_SECOND,
  PACED_STREAMS,
  QUICK,
  SMALL_CONNECTIONS,
  type Plan,
} from './plan.ts';
import { announcedPort, cpuMicros, startProgram } from './program.ts';
import { median, table } from './report.ts';
import { BURST_EVENTS, MODELS, PACED_EVENTS } from './upstream/replies.ts';
import { LUKEWARM, WARM } from './warm.ts';

const HELP = `node bench/tunnel.ts [--quick]

Measures the upstream hop alone, in small servers without billing, so that nothing dilutes its cost: the CPU of the gateway's process for each call
and each event of a stream, and calls a second. Rounds are interleaved, figures are medians. All on 127.0.0.1.
  --quick   half a minute instead of two and a half; for orders of magnitude
Profile one way with "node bench/profile.ts --target hop-tunnel".
`;

/** CPU time of the gateway and duration of a call, relative to a direct call of the upstream. */
const BUDGET = { most: 2.5, goal: 1.8 };

interface Sample {
  readonly callsPerSecond: number;
  readonly errors: number;
  readonly generatorLoad: number;
  /** CPU microseconds per call or event. */
  readonly gateway: number;
  readonly proxy: number | null;
  readonly otherGateway: number | null;
}

interface Load {
  readonly title: string;
  run(generator: Generator, hop: Hop): Promise<Sample>;
}

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const say = (text: string) => process.stderr.write(`${text}\n`);

function loadOf(title: string, model: string, events: number, shape: Parameters<typeof jobFor>[2]): Load {
  return {
    title,
    async run(generator, hop) {
      const pids = [hop.pid, hop.proxyPid, hop.otherGatewayPid];
      const read = () => pids.map((pid) => (pid === null ? null : cpuMicros(pid)));
      const before = read();
      const { calls, errors, firstError, elapsedMs, generatorLoad } = await generator.run(jobFor(hop, model, shape));
      if (calls === 0) throw new Error(firstError);
      const after = read();
      const [gateway, proxy, otherGateway] = pids.map((_, index) =>
        after[index] === null ? null : (after[index]! - before[index]!) / (calls * events),
      );
      return {
        callsPerSecond: (calls / elapsedMs) * 1000,
        errors,
        generatorLoad,
        gateway: gateway!,
        proxy: proxy!,
        otherGateway: otherGateway!,
      };
    },
  };
}

const loadsOf = ({ smallMs, openMs, burstMs }: Plan): readonly Load[] => [
  loadOf('CPU µs/call', MODELS.small, 1, { kind: 'closed', connections: SMALL_CONNECTIONS, durationMs: smallMs }),
  loadOf(`CPU µs/call at ${OPEN_PER_SECOND}/s`, MODELS.small, 1, {
    kind: 'open',
    perSecond: OPEN_PER_SECOND,
    durationMs: openMs,
  }),
  loadOf('burst CPU µs/event', MODELS.burst, BURST_EVENTS, {
    kind: 'closed',
    connections: BURST_CONNECTIONS,
    durationMs: burstMs,
  }),
  // A paced stream takes longer than this, so each connection carries exactly one.
  loadOf('paced CPU µs/event', MODELS.paced, PACED_EVENTS, {
    kind: 'closed',
    connections: PACED_STREAMS,
    durationMs: 500,
  }),
];

const number = (value: number | null) => (value === null ? '–' : value.toFixed(value < 10 ? 2 : value < 100 ? 1 : 0));
const times = (value: number) => (Number.isFinite(value) ? `${value.toFixed(2)}×` : '–');

function verdict(ratio: number): string {
  return ratio <= BUDGET.goal ? 'goal reached' : ratio <= BUDGET.most ? 'within budget' : '**missed**';
}

/**
 * The report: the gateway's cost of each way, then the cost of the other processes, then the budget.
 * `samples[load][way]` has one sample per round.
 */
function reportOf(loads: readonly Load[], samples: readonly (readonly (readonly Sample[])[])[]): string {
  const of = (load: number, way: number, pick: (sample: Sample) => number | null) =>
    median(samples[load]![way]!.map(pick));
  // Compares within each round, because the machine's other load differs more between rounds than within one.
  const ratio = (load: number, way: number) =>
    median(samples[load]![way]!.map(({ gateway }, round) => gateway / samples[load]![0]![round]!.gateway)) ??
    Number.NaN;

  const own = HOPS.map(({ title }, way) => [
    title,
    number(of(0, way, ({ callsPerSecond }) => callsPerSecond)),
    ...loads.flatMap((_load, load) => [
      number(of(load, way, ({ gateway }) => gateway)),
      way === 0 ? '1×' : times(ratio(load, way)),
    ]),
  ]);
  const others = HOPS.slice(1).flatMap(({ title }, index) => [
    [`${title}: the proxy`, ...loads.map((_load, load) => number(of(load, index + 1, ({ proxy }) => proxy)))],
    [
      `${title}: the other gateway`,
      ...loads.map((_load, load) => number(of(load, index + 1, ({ otherGateway }) => otherGateway))),
    ],
  ]);
  const tunnel = HOPS.findIndex(({ name }) => name === 'hop-tunnel');
  const all = samples.flat(2);
  const errors = all.reduce((sum, sample) => sum + sample.errors, 0);
  return [
    table(['way', 'calls/s', ...loads.flatMap(({ title }) => [title, '÷ straight'])], own),
    table(
      ['beside it', ...loads.map(({ title }) => title)],
      others.filter((row) => row.slice(1).some((figure) => figure !== '–')),
    ),
    `Through a tunnel, against a budget of ${BUDGET.most}× and a goal of ${BUDGET.goal}×: ${loads
      .map(({ title }, load) => `${title} ${times(ratio(load, tunnel))}, ${verdict(ratio(load, tunnel))}`)
      .join('; ')}.`,
    ...(errors > 0 ? [`**${errors} calls failed.**`] : []),
    ...(all.some(({ generatorLoad }) => generatorLoad > 0.9)
      ? ['The load generator used more than 0.9 of a core at times: calls/s are a floor then, CPU holds.']
      : []),
  ].join('\n\n');
}

async function measure(
  running: readonly Hop[],
  kinds: readonly HopKind[],
  loads: readonly Load[],
  generator: Generator,
  rounds: number,
): Promise<string> {
  const samples: Sample[][][] = loads.map(() => kinds.map(() => []));
  for (let round = 0; round < rounds; round++) {
    say(`round ${round + 1} of ${rounds}`);
    for (const [load, { run }] of loads.entries())
      for (let turn = 0; turn < kinds.length; turn++) {
        // Each round begins with another way, so that no way always has the same place.
        const way = (turn + round) % kinds.length;
        samples[load]![way]!.push(await run(generator, running[way]!));
      }
  }
  return reportOf(loads, samples);
}

const { values } = parseArgs({ options: { quick: { type: 'boolean' }, help: { type: 'boolean' } } });
if (values.help) process.stdout.write(HELP);
else {
  const plan = values.quick ? QUICK : FULL;
  const loadBefore = loadavg()[0] ?? 0;
  const upstream = startProgram([here('upstream/main.ts')]);
  const generator = startGenerator();
  const running: Hop[] = [];
  try {
    const upstreamPort = await announcedPort(upstream);
    for (const kind of HOPS) {
      const hop = await kind.start(upstreamPort);
      running.push(hop);
      await warmUp(generator, hop, values.quick ? LUKEWARM : WARM);
    }
    const report = await measure(running, HOPS, loadsOf(plan), generator, plan.rounds);
    const [cpu] = cpus();
    const machine = `${cpus().length} × ${cpu?.model.trim() ?? 'unknown CPU'}, Node ${process.version}`;
    process.stdout.write(
      `${new Date().toISOString()}, ${machine}, load before ${loadBefore.toFixed(1)}, medians of ${plan.rounds} rounds\n\n${report}\n`,
    );
  } finally {
    for (const hop of running.reverse()) await hop.stop();
    generator.stop();
    await upstream.stop();
  }
}
