import { spawn } from 'node:child_process';
import { availableParallelism, loadavg } from 'node:os';
import { expect, test, vi } from 'vitest';
import { atThisLoad } from '../support/at-this-load.ts';

test('a clock that an earlier test had replaced does not count as a machine that stood still', async () => {
  const [pause, now] = [setTimeout, performance.now.bind(performance)];
  const longer = () => atThisLoad(1);
  const before = longer();
  vi.useFakeTimers();
  try {
    // The watch looks at the clock during this pause.
    await new Promise((resolve) => pause(resolve, 200));
  } finally {
    vi.useRealTimers();
  }
  await new Promise((resolve) => pause(resolve, 100));
  // With the replaced clock, everything since the start of this process would count.
  expect(longer() - before).toBeLessThan(now() / 2);
});

test('a bound is longer as soon as others work, and not only when the average of a minute shows it', async () => {
  const busy = Array.from({ length: 8 * availableParallelism() }, () =>
    spawn(process.execPath, ['-e', 'for (const end = Date.now() + 60_000; Date.now() < end; );'], { stdio: 'ignore' }),
  );
  const longer = () => atThisLoad(1_000_000) / 1_000_000 - Math.max(1, loadavg()[0]! / availableParallelism());
  try {
    await expect.poll(longer, { timeout: 60_000 }).toBeGreaterThan(0.5);
  } finally {
    for (const child of busy) child.kill('SIGKILL');
  }
});
