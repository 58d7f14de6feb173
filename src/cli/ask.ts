import { createInterface } from 'node:readline/promises';

const ANSWER_MS = 10_000;

/**
 * Asks a yes-or-no question on the terminal. Any answer but yes means no. Without an answer within `waitMs`, by default
 * ten seconds, it is no too.
 */
export async function askYesNo(question: string, waitMs = ANSWER_MS): Promise<boolean> {
  const lines = createInterface({ input: process.stdin, output: process.stdout });
  // While readline waits for an answer, it takes Ctrl-C. The signal is meant for the program, so it is passed on.
  lines.on('SIGINT', () => process.kill(process.pid, 'SIGINT'));
  try {
    const answer = await lines.question(`${question} [y/N] `, { signal: AbortSignal.timeout(waitMs) });
    return /^y(es)?$/i.test(answer.trim());
  } catch {
    process.stdout.write('no\n');
    return false;
  } finally {
    lines.close();
    process.stdin.pause();
  }
}
