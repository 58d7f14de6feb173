import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { startProvider, type TestProvider } from '../support/provider.ts';
import { ask, modelBlock, startSpine, UNHURRIED, type Spine } from '../support/spine.ts';

// How often one call is tried: at three providers at most, and within the retry budget of the whole gateway.

const NAMES = ['A', 'B', 'C', 'D'] as const;
const providers: TestProvider[] = [];
let spine: Spine;
let skew = 0;

beforeAll(async () => {
  for (const _ of NAMES) providers.push(await startProvider());
  spine = await startSpine({
    now: () => Date.now() + skew,
    toml: `${UNHURRIED}
[upstream]
cooldown_ms = 0
${NAMES.map((provider, index) => modelBlock({ name: 'test/four', provider, url: providers[index]!.url })).join('')}`,
  });
});
afterAll(async () => {
  await spine.stop();
  for (const provider of providers) await provider.stop();
});
beforeEach(() => {
  skew += 20_000;
  for (const provider of providers) provider.log.length = 0;
});
afterEach(async () => {
  expect(await spine.faults()).toEqual([]);
});

const four = (content: string, more: object = {}) =>
  spine.post('/chat/completions', ask(content, { model: 'test/four', ...more }));
const calls = () => providers.map((provider) => provider.log.length);

test('a call is tried at three providers, and not at a fourth', async () => {
  const response = await four('hello !status:500', { provider: { order: [...NAMES] } });
  expect(response.status).toBe(500);
  expect(calls()).toEqual([1, 1, 1, 0]);
});

test('without allow_fallbacks it is tried once', async () => {
  const response = await four('hello !status:500', { provider: { order: ['C'], allow_fallbacks: false } });
  expect(response.status).toBe(500);
  expect(calls()).toEqual([0, 0, 1, 0]);
});

/** Calls whose try at another provider was begun before its first failure was known. */
const FIRST_TRIES = 10;

test.each([
  ['an outage', 500],
  ['refusals', 400],
])('in %s of everybody, retries stay within a fifth of the calls and ten', async (_name, status) => {
  const before = await spine.balance();
  const statuses = await Promise.all(
    Array.from({ length: 100 }, async () => (await four(`hello !status:${status}`)).status),
  );
  expect(new Set(statuses)).toEqual(new Set([status]));
  const attempts = calls().reduce((sum, count) => sum + count, 0);
  expect(attempts).toBeGreaterThan(100);
  // The first try at each of the other three is no retry, until it is known that it fails too.
  expect(attempts).toBeLessThanOrEqual(100 + 20 + 10 + 3 * FIRST_TRIES);
  await spine.quiet();
  expect(await spine.balance()).toEqual(before);
});
