import { createInterface } from 'node:readline/promises';

const ANSWER_MS = 10_000;

/** A yes-or-no question on the terminal. Anything but yes is no, and so is no answer within ten seconds. */
export async function askYesNo(question: string): Promise<boolean> {
  const lines = createInterface({ input: process.stdin, output: process.stdout });
  // While it asks, the terminal gives Ctrl-C to the question; it is meant for the program.
  lines.on('SIGINT', () => process.kill(process.pid, 'SIGINT'));
  try {
    const answer = await lines.question(`${question} [y/N] `, { signal: AbortSignal.timeout(ANSWER_MS) });
    return /^y(es)?$/i.test(answer.trim());
  } catch {
    process.stdout.write('no\n');
    return false;
  } finally {
    lines.close();
    process.stdin.pause();
  }
}
