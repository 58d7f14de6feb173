/** What tags cost: the CPU of a chat call with tags against one without, at the same gateway. See `--help`. */
import { readdirSync } from 'node:fs';
import { cpus, loadavg } from 'node:os';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { startGenerator } from './generator.ts';
import type { Job } from './load/job.ts';
import { jobFor } from './measure.ts';
import { SMALL_CONNECTIONS } from './plan.ts';
import { announcedPort, cpuMicros, startProgram } from './program.ts';
import { table } from './report.ts';
import { TARGETS, type Target } from './targets.ts';
import { MODELS } from './upstream/replies.ts';
import { WARM, warm } from './warm.ts';

const HELP = `node bench/tags.ts [--rounds 300] [--seconds 0.2]
Chat calls of ${SMALL_CONNECTIONS} connections at one gateway with the embedded database: without tags, without tags again (what differs there is
noise), with one tag, and with three. Each round measures all of them, in turns, so that what else the machine does
falls on all. CPU is that of all threads, with the sums by tag, in nanoseconds; ÷ is that of all rounds together, and
its quarters are those of 20 parts of the rounds.
`;

const CASES = [
  ['without tags', {}],
  ['without tags again', {}],
  ['one tag', { 'x-tollgate-tags': 'team=search' }],
  ['three tags', { 'x-tollgate-tags': 'team=search, feature=summary, tier=gold' }],
] as const satisfies readonly (readonly [string, Readonly<Record<string, string>>])[];

interface Part {
  readonly cpu: number;
  readonly calls: number;
}

const PARTS = 20;
const each = (parts: readonly Part[]): number =>
  parts.reduce((sum, { cpu }) => sum + cpu, 0) / parts.reduce((sum, { calls }) => sum + calls, 0);

/** CPU microseconds of all threads, whose time the scheduler counts in nanoseconds; that of the process has 10 ms. */
const cpuOfThreads = (pid: number): number =>
  readdirSync(`/proc/${pid}/task`).reduce((sum, thread) => sum + cpuMicros(pid, Number(thread)), 0);

const { values: flags } = parseArgs({
  options: {
    rounds: { type: 'string', default: '300' },
    seconds: { type: 'string', default: '0.2' },
    help: { type: 'boolean', default: false },
  },
});
if (flags.help) process.stdout.write(HELP);
else await measure(Number(flags.rounds), Number(flags.seconds) * 1_000);

async function measure(rounds: number, durationMs: number): Promise<void> {
  const loadBefore = loadavg()[0] ?? 0;
  const upstream = startProgram([fileURLToPath(new URL('upstream/main.ts', import.meta.url))]);
  const generator = startGenerator();
  let target: Target | null = null;
  try {
    const kind = TARGETS.find(({ name }) => name === 'tollgate')!;
    target = await kind.start(await announcedPort(upstream));
    const { pid, headers } = target;
    const targets = CASES.map(([, tags]): Target => ({ ...target!, headers: { ...headers, ...tags } }));
    const jobOf = (index: number) => (shape: Job['shape']) => jobFor(targets[index]!, MODELS.small, shape);
    for (const index of CASES.keys()) await warm(generator, jobOf(index), WARM);
    const parts: Part[][] = CASES.map(() => []);
    for (let round = 0; round < rounds; round += 1)
      for (let turn = 0; turn < CASES.length; turn += 1) {
        const index = (turn + round) % CASES.length;
        const before = cpuOfThreads(pid!);
        const shape = { kind: 'closed', connections: SMALL_CONNECTIONS, durationMs } as const;
        const { calls, errors, firstError } = await generator.run(jobOf(index)(shape));
        if (errors > 0 || calls === 0) throw new Error(`${errors} of ${errors + calls} calls failed: ${firstError}`);
        parts[index]!.push({ cpu: cpuOfThreads(pid!) - before, calls });
      }
    const rows = CASES.map(([title], index) => {
      const ratios = Array.from({ length: PARTS }, (_, part) => {
        const [tagged, plain] = [parts[index]!, parts[0]!].map((of) => each(of.filter((__, n) => n % PARTS === part)));
        return tagged! / plain!;
      }).toSorted((a, b) => a - b);
      const at = (share: number) => ratios[Math.floor(share * (ratios.length - 1))]!.toFixed(3);
      const all = each(parts[index]!);
      return [title, all.toFixed(1), (all / each(parts[0]!)).toFixed(3), `${at(0.25)} to ${at(0.75)}`];
    });
    const [processor] = cpus();
    const machine = `${cpus().length} × ${processor?.model.trim() ?? 'unknown CPU'}, Node ${process.version}`;
    process.stdout.write(
      `${new Date().toISOString()}, ${machine}, load before ${loadBefore.toFixed(1)}, ${rounds} rounds\n\n` +
        `${table(['', 'CPU µs/call', '÷', 'quarters'], rows)}\n`,
    );
  } finally {
    await target?.stop();
    generator.stop();
    await upstream.stop();
  }
}
