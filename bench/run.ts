/** `npm run bench`: measures tollgate, passthroughs and another gateway in one run on this machine. See `--help`. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { cpus, loadavg } from 'node:os';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { startGenerator, type Generator } from './generator.ts';
import { installPeers } from './install-peers.ts';
import { measureMemory, measureRound, warmUp } from './measure.ts';
import { FULL, QUICK, type Plan } from './plan.ts';
import { announcedPort, startProgram } from './program.ts';
import { figuresOf, reportOf, type Run, type TargetSamples } from './report.ts';
import { TARGETS, type Target, type TargetKind } from './targets.ts';
import { LUKEWARM, WARM, type Warmth } from './warm.ts';

const HELP = `npm run bench -- [--quick] [--only direct,fastify,tollgate] [--no-memory]

Measures CPU per call, added latency, streams and memory of tollgate beside passthroughs and Portkey's gateway, all on 127.0.0.1.
  --quick      two minutes instead of about 11
  --only       some targets: ${TARGETS.map((kind) => kind.name).join(', ')}
  --no-memory  without the open streams
The table goes to stdout and, with all samples, to bench/results/.
`;

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const say = (text: string) => process.stderr.write(`${text}\n`);

interface Running {
  readonly kind: TargetKind;
  readonly target: Target;
  readonly samples: TargetSamples;
}

async function startTarget(
  kind: TargetKind,
  upstreamPort: number,
  generator: Generator,
  samples: TargetSamples,
  warmth: Warmth,
): Promise<Target | null> {
  const missing = kind.missing?.();
  if (missing) {
    samples.failure = `not measured: ${missing}`;
    return null;
  }
  let target: Target | null = null;
  try {
    target = await kind.start(upstreamPort);
    await warmUp(generator, target, warmth);
    return target;
  } catch (error) {
    samples.failure = `not measured: ${error instanceof Error ? error.message : String(error)}`;
    await target?.stop();
    return null;
  }
}

async function rounds(running: readonly Running[], generator: Generator, plan: Plan): Promise<void> {
  for (let round = 0; round < plan.rounds; round++) {
    // Each round begins with another target, so that no target always has the same place.
    const order = running.map((_one, index) => running[(index + round) % running.length]!);
    for (const { kind, target, samples } of order) {
      say(`round ${round + 1} of ${plan.rounds}: ${kind.name}`);
      try {
        samples.rounds[round] = await measureRound(generator, target, plan, round);
      } catch (error) {
        samples.failure = `round ${round + 1}: ${String(error)}`;
      }
    }
  }
}

/** Uses fresh processes, one at a time, because memory from the rounds would hide the cost of a stream. */
async function memory(
  all: readonly { kind: TargetKind; samples: TargetSamples }[],
  upstreamPort: number,
  generator: Generator,
  plan: Plan,
): Promise<void> {
  for (let round = 0; round < plan.memoryRounds; round++)
    for (const { kind, samples } of all) {
      if (kind.name === 'direct' || samples.rounds.length === 0) continue;
      say(`open streams ${round + 1} of ${plan.memoryRounds}: ${kind.name}`);
      let target: Target | null = null;
      try {
        target = await kind.start(upstreamPort);
        const sample = await measureMemory(generator, target, plan.heldStreams);
        if (sample) samples.memory.push(sample);
      } catch (error) {
        samples.failure ??= `open streams: ${String(error)}`;
      } finally {
        await generator.release();
        await target?.stop();
      }
    }
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      quick: { type: 'boolean' },
      only: { type: 'string' },
      'no-memory': { type: 'boolean' },
      help: { type: 'boolean' },
    },
  });
  if (values.help) return void process.stdout.write(HELP);
  const only = values.only?.split(',');
  const unknown = only?.find((name) => !TARGETS.some((kind) => kind.name === name));
  if (unknown) throw new Error(`no target ${unknown}; there are ${TARGETS.map((kind) => kind.name).join(', ')}`);
  const plan = values.quick ? QUICK : FULL;
  const kinds = TARGETS.filter((kind) => !only || only.includes(kind.name) || kind.name === 'direct');
  const loadBefore = loadavg()[0] ?? 0;
  if (kinds.some((kind) => kind.name === 'portkey')) installPeers('@portkey-ai/gateway');

  const begun = performance.now();
  const startedAt = new Date().toISOString();
  const upstream = startProgram([here('upstream/main.ts')]);
  const generator = startGenerator();
  const all = kinds.map((kind): { kind: TargetKind; samples: TargetSamples } => ({
    kind,
    samples: { name: kind.name, title: kind.title, failure: null, rounds: [], memory: [] },
  }));
  const running: Running[] = [];
  try {
    const upstreamPort = await announcedPort(upstream);
    for (const { kind, samples } of all) {
      say(`starting ${kind.name}`);
      const target = await startTarget(kind, upstreamPort, generator, samples, values.quick ? LUKEWARM : WARM);
      if (target) running.push({ kind, target, samples });
      else say(samples.failure ?? '');
    }
    await rounds(running, generator, plan);
    await Promise.all(running.splice(0).map(({ target }) => target.stop()));
    if (!values['no-memory']) await memory(all, upstreamPort, generator, plan);
  } finally {
    await Promise.allSettled(running.map(({ target }) => target.stop()));
    generator.stop();
    await upstream.stop();
  }

  const [cpu] = cpus();
  const run: Run = {
    startedAt,
    machine: `${cpus().length} × ${cpu?.model.trim() ?? 'unknown CPU'}, Node ${process.version}`,
    quick: values.quick ?? false,
    loadBefore,
    tookS: (performance.now() - begun) / 1000,
    targets: all.map(({ samples }) => samples),
  };
  const report = reportOf(run);
  mkdirSync(here('results'), { recursive: true });
  const name = here(`results/${startedAt.slice(0, 19).replaceAll(':', '')}`);
  writeFileSync(`${name}.md`, report);
  writeFileSync(`${name}.json`, `${JSON.stringify({ ...run, figures: figuresOf(run) }, null, 1)}\n`);
  process.stdout.write(report);
}

await main();
