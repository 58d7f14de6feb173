import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createBackoff } from '../../../src/providers/proxy/redial.ts';

const bounds = (random: () => number, count: number) => {
  const backoff = createBackoff(random);
  return Array.from({ length: count }, () => backoff.next());
};

describe('waiting between dials', () => {
  it('is bounded by a quarter of a second, doubled each time, up to 15 seconds', () => {
    expect(bounds(() => 1, 9)).toEqual([250, 500, 1_000, 2_000, 4_000, 8_000, 15_000, 15_000, 15_000]);
  });

  it('is spread over the whole time, so that many do not come back at once', () => {
    fc.assert(
      fc.property(fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }), (share) => {
        const most = bounds(() => 1, 40);
        for (const [index, wait] of bounds(() => share, 40).entries())
          expect(wait).toBe(Math.floor(share * most[index]!));
      }),
    );
  });

  it('begins anew after a reset', () => {
    const backoff = createBackoff(() => 1);
    for (let round = 0; round < 2_000; round += 1) backoff.next();
    backoff.reset();
    expect(backoff.next()).toBe(250);
  });
});
