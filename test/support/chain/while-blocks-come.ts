import { setTimeout as pause } from 'node:timers/promises';
import { atThisLoad } from '../at-this-load.ts';

const PAUSE_MS = 20;
const PAUSE_MAX_MS = 1_000;
const WITHIN_MS = 60_000;

/**
 * Makes blocks until `reached` resolves with true, so that earlier transactions become final. Rejects after a minute
 * with the text of `state`.
 *
 * The pauses between blocks grow. These blocks stand for half a minute each but come every few milliseconds. On a busy
 * machine, a blockhash would otherwise expire before the process that requested it gets the answer, again and again.
 */
export async function whileBlocksCome(
  chain: { finalize(): Promise<void> },
  reached: () => Promise<boolean>,
  state: () => string | Promise<string>,
): Promise<void> {
  const until = performance.now() + atThisLoad(WITHIN_MS);
  for (let ms = PAUSE_MS; !(await reached()); ms = Math.min(ms * 1.1, PAUSE_MAX_MS)) {
    if (performance.now() > until) throw new Error(await state());
    await chain.finalize();
    await pause(ms);
  }
}
