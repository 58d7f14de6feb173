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
