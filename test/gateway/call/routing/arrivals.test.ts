import { afterEach, expect, test, vi } from 'vitest';
import { createArrivals } from '../../../../src/gateway/call/routing/arrivals.ts';
import { offer } from './offers.ts';

const [a, b, c] = [offer({ provider: 'A' }), offer({ provider: 'B' }), offer({ provider: 'C' })];

function world(here: string[] = []) {
  vi.useFakeTimers();
  let tell: (provider: string) => void = () => {};
  const arrivals = createArrivals({
    present: ({ provider }) => here.includes(provider.id),
    onReturned: (listener) => (tell = listener),
    waitMs: 1_000,
  });
  return { arrivals, returned: (provider: string) => tell(provider) };
}
afterEach(() => void vi.useRealTimers());

test('nobody is waited for while one provider can be reached, or where there is only one', () => {
  const { arrivals } = world([b.provider.id]);
  expect(arrivals.waitFor([a, b])).toBeNull();
  expect(arrivals.waitFor([a])).toBeNull();
  expect(arrivals.waitFor([a, a])).toBeNull();
  expect(arrivals.waitFor([])).toBeNull();
});

test('the first provider that returns ends the wait, another one does not', async () => {
  const { arrivals, returned } = world();
  const first = arrivals.waitFor([a, b]);
  const second = arrivals.waitFor([b, c]);
  returned(c.provider.id);
  expect(await second).toBe(true);
  returned(a.provider.id);
  expect(await first).toBe(true);
  expect(vi.getTimerCount()).toBe(0);
});

test('nobody comes: the wait ends in time, and at once when the gateway stops', async () => {
  const { arrivals } = world();
  const late = arrivals.waitFor([a, b]);
  vi.advanceTimersByTime(1_000);
  expect(await late).toBe(false);
  const stopped = arrivals.waitFor([a, b]);
  arrivals.close();
  expect(await stopped).toBe(false);
  expect(arrivals.waitFor([a, b])).toBeNull();
  expect(vi.getTimerCount()).toBe(0);
});
