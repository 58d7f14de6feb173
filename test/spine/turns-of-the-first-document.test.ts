import { expect, test } from 'vitest';
import { startSpine, UNHURRIED } from '../support/spine.ts';

// The first request for /openapi.json describes some two hundred routes. No other call waits for all of that.

/** The CPU time of each turn of this thread's event loop until `work` has ended, in milliseconds. */
async function turnsOf(work: Promise<unknown>): Promise<number[]> {
  const turns: number[] = [];
  let over = false;
  void work.finally(() => (over = true));
  let before = process.threadCpuUsage();
  while (!over) {
    await new Promise((resolve) => setImmediate(resolve));
    const { user, system } = process.threadCpuUsage(before);
    turns.push((user + system) / 1000);
    before = process.threadCpuUsage();
  }
  return turns;
}

test('the first document of the API is made over many turns of the event loop', async () => {
  const spine = await startSpine({ toml: UNHURRIED });
  try {
    // The first fetch of a process loads its own code.
    await (await fetch(`${spine.origin}/health/live`)).text();
    const turns = await turnsOf(fetch(`${spine.origin}/openapi.json`).then((response) => response.text()));
    const long = turns.filter((ms) => ms > 2);
    const sum = long.reduce((all, ms) => all + ms, 0);
    expect(turns.reduce((most, ms) => Math.max(most, ms), 0)).toBeLessThan(0.4 * sum);
  } finally {
    await spine.stop();
  }
});
