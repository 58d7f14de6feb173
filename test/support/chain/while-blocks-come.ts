import { setTimeout as pause } from 'node:timers/promises';
import { atThisLoad } from '../at-this-load.ts';

const PAUSE_MS = 20;
const PAUSE_MAX_MS = 1_000;
const WITHIN_MS = 60_000;

/**
 * Makes blocks until `reached` holds, so that what was done becomes final. Rejects after a minute, with what `state`
 * tells.
 *
 * The pauses between blocks grow. Blocks that stand for half a minute come every few milliseconds here: on a busy
 * machine a blockhash would be old before the process that asked for it has the answer, each time anew.
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
