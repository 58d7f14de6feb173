import { createLog, type loadChecks, type Log } from '#provide';
import { painter } from './terminal.ts';

type Checks = Awaited<ReturnType<typeof loadChecks>>;

/** For checks, whose results are printed. */
export const SILENT: Log = createLog({ level: 'silent', style: 'json', secrets: [], write() {}, now: Date.now });

/** Runs checks of services and prints a line for each. Sets the exit code if one failed. `scrub` removes secrets. */
export async function printChecks(
  checks: ReturnType<Checks['serviceChecks']>,
  runChecks: Checks['runChecks'],
  scrub: (text: string) => string,
): Promise<void> {
  const paint = painter();
  const width = Math.max(0, ...checks.map(({ name }) => name.length));
  const ok = await runChecks(checks, Date.now, ({ kind, name }, result) => {
    const mark = result.ok ? paint('green', '✓') : paint('red', '✗');
    const lines = [
      `${mark} ${kind.padEnd(9)} ${name.padEnd(width)}  ${paint('dim', `${result.ms} ms`.padStart(8))}  ${scrub(result.detail)}`,
      ...result.advice.map((advice) => `  ${paint('yellow', '!')} ${scrub(advice)}`),
    ];
    process.stdout.write(`${lines.join('\n')}\n`);
  });
  if (!ok) process.exitCode = 1;
}
