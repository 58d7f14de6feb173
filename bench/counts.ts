/**
 * Counts what one call makes the main thread do, where clocks do not help because other work runs beside it: bytes
 * allocated, bytes that outlive their scavenge, and functions. See `--help`.
 */
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { startGenerator, type Generator } from './generator.ts';
import type { Job } from './load/job.ts';
import { MCP_TARGETS, mcpJobFor } from './mcp-targets.ts';
import { jobFor } from './measure.ts';
import { announcedPort, startProgram } from './program.ts';
import { TARGETS, type Target } from './targets.ts';
import { TOOLS } from './upstream/mcp-replies.ts';
import { MODELS } from './upstream/replies.ts';
import { warm } from './warm.ts';

const HELP = `node bench/counts.ts [--load small,tool] [--calls 4000] [--warm 15000]
  --load  small, stream: chat calls; tool: tools/call of MCP; fastify: chat calls through the bare proxy
The functions that at least every second call runs are listed in bench/results/functions-LOAD.txt, with how often.
`;

const { values: flags } = parseArgs({
  options: {
    load: { type: 'string', default: 'small,tool' },
    calls: { type: 'string', default: '4000' },
    warm: { type: 'string', default: '15000' },
    help: { type: 'boolean' },
  },
});

const LOADS: Readonly<Record<string, { target: string; job: (target: Target, shape: Job['shape']) => Job }>> = {
  small: { target: 'tollgate', job: (target, shape) => jobFor(target, MODELS.small, shape) },
  fastify: { target: 'fastify', job: (target, shape) => jobFor(target, MODELS.small, shape) },
  stream: { target: 'tollgate', job: (target, shape) => jobFor(target, MODELS.short, shape) },
  tool: { target: 'mcp-tollgate', job: (target, shape) => mcpJobFor(target, TOOLS.small, shape) },
};

const RESULT = new URL('results/work.json', import.meta.url);

interface Work {
  readonly allocated: number;
  readonly old: number;
  readonly majors: number;
  readonly functions: readonly (readonly [name: string, count: number])[];
}

/** What the target did while the job ran, with the number of calls. */
async function work(generator: Generator, pid: number, job: Job): Promise<{ calls: number; did: Work }> {
  rmSync(RESULT, { force: true });
  process.kill(pid, 'SIGUSR2');
  await pause(500);
  const { calls, errors, firstError } = await generator.run(job);
  if (errors > 0) throw new Error(`${errors} calls failed: ${firstError}`);
  process.kill(pid, 'SIGUSR2');
  while (!existsSync(RESULT)) await pause(50);
  return { calls, did: JSON.parse(readFileSync(RESULT, 'utf8')) as Work };
}

async function count(name: string, generator: Generator, upstreamPort: number): Promise<void> {
  const load = LOADS[name];
  if (!load) throw new Error(`there is no load ${name}; there are ${Object.keys(LOADS).join(', ')}`);
  const kind = [...TARGETS, ...MCP_TARGETS].find((target) => target.name === load.target)!;
  const target = await kind.start(upstreamPort, ['--import', new URL('targets/count-work.ts', import.meta.url).href]);
  try {
    const pid = target.pid!;
    await warm(generator, (shape) => load.job(target, shape), { calls: Number(flags.warm), msMax: 60_000 });
    // One after the other: calls at the same time share records of the ledger, which makes each of them cheaper.
    const job = (callsMax: number) =>
      load.job(target, { kind: 'closed', connections: 1, durationMs: 120_000, callsMax });
    const bytes = await work(generator, pid, job(Number(flags.calls)));
    const calls = await work(generator, pid, job(500));
    const each = calls.did.functions
      .map(
        ([place, times]) => [place.replace(/^.*\/(?=(?:src|bench|node_modules)\/)/, ''), times / calls.calls] as const,
      )
      .filter(([, times]) => times >= 0.5);
    const sums = (pattern: RegExp) => {
      const fitting = each.filter(([place]) => pattern.test(place));
      return `${fitting.length} (${fitting.reduce((sum, [, times]) => sum + times, 0).toFixed(0)} calls)`;
    };
    process.stdout.write(
      `${name}: ${(bytes.did.allocated / bytes.calls / 1000).toFixed(1)} KB a call, ${(bytes.did.old / bytes.calls).toFixed(0)} B kept${bytes.did.majors > 0 ? ` (${bytes.did.majors} full collections: more)` : ''}; functions: src ${sums(/^src/)}, packages ${sums(/^node_modules/)}, node ${sums(/^node:/)} [${bytes.calls}, ${calls.calls} calls]\n`,
    );
    writeFileSync(
      new URL(`results/functions-${name}.txt`, import.meta.url),
      each
        .toSorted((a, b) => (a[0] < b[0] ? -1 : 1))
        .map(([place, times]) => `${times.toFixed(2).padStart(7)} ${place}\n`)
        .join(''),
    );
  } finally {
    await target.stop();
  }
}

if (flags.help) process.stdout.write(HELP);
else {
  const upstream = startProgram([new URL('upstream/main.ts', import.meta.url).pathname]);
  const generator = startGenerator();
  try {
    const port = await announcedPort(upstream);
    for (const name of flags.load.split(',')) await count(name, generator, port);
  } finally {
    generator.stop();
    await upstream.stop();
  }
}
