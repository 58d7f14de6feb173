/** What tags cost: the CPU of a chat call with tags against one without, at the same gateway. See `--help`. */
import { cpus, loadavg } from 'node:os';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { startGenerator } from './generator.ts';
import type { Job } from './load/job.ts';
import { jobFor } from './measure.ts';
import { SMALL_CONNECTIONS } from './plan.ts';
import { announcedPort, cpuMicros, startProgram } from './program.ts';
import { median, table } from './report.ts';
import { TARGETS, type Target } from './targets.ts';
import { MODELS } from './upstream/replies.ts';
import { WARM, warm } from './warm.ts';

const HELP = `node bench/tags.ts [--rounds 20] [--seconds 1]
Chat calls of ${SMALL_CONNECTIONS} connections at one gateway with the embedded database: without tags, without tags again (what differs there is
noise), with one tag, and with three. Each round measures all of them, in turns; ÷ is within a round, and the figures
are medians over the rounds, with the quarters of the ratio. CPU is that of all threads, with the figures by tag.
`;

const CASES = [
  ['without tags', {}],
  ['without tags again', {}],
  ['one tag', { 'x-tollgate-tags': 'team=search' }],
  ['three tags', { 'x-tollgate-tags': 'team=search, feature=summary, tier=gold' }],
] as const satisfies readonly (readonly [string, Readonly<Record<string, string>>])[];

const { values: flags } = parseArgs({
  options: {
    rounds: { type: 'string', default: '20' },
    seconds: { type: 'string', default: '1' },
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
    const cpu: number[][] = CASES.map(() => []);
    for (let round = 0; round < rounds; round += 1)
      for (let turn = 0; turn < CASES.length; turn += 1) {
        const index = (turn + round) % CASES.length;
        const before = cpuMicros(pid!);
        const shape = { kind: 'closed', connections: SMALL_CONNECTIONS, durationMs } as const;
        const { calls, errors, firstError } = await generator.run(jobOf(index)(shape));
        if (errors > 0 || calls === 0) throw new Error(`${errors} of ${errors + calls} calls failed: ${firstError}`);
        cpu[index]!.push((cpuMicros(pid!) - before) / calls);
      }
    const rows = CASES.map(([title], index) => {
      const ratios = cpu[index]!.map((value, round) => value / cpu[0]![round]!).toSorted((a, b) => a - b);
      const at = (share: number) => ratios[Math.floor(share * (ratios.length - 1))]!.toFixed(3);
      return [title, median(cpu[index]!)!.toFixed(1), at(0.5), `${at(0.25)} to ${at(0.75)}`];
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
