import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { startProvider, type TestProvider } from '../support/provider.ts';
import { ask, modelBlock, startSpine, UNHURRIED, type Spine } from '../support/spine.ts';

// Providers that take a request and say nothing: models have timeouts of their own, and whoever leaves in vain is not
// sent there again.

const EVENT_MS = 400;
let slow: TestProvider;
let spine: Spine;
let skew = 0;
const toml = (params: string) =>
  `${UNHURRIED}[billing]\ndrain_ms = 100\n${modelBlock({ name: 'acme/two', provider: 'Slow', url: slow.url, prompt: 1, completion: 1, params })}${modelBlock({ name: 'acme/two', provider: 'Quick', url: spine?.provider.url ?? '{provider}', prompt: 2, completion: 2 })}`;
beforeAll(async () => {
  slow = await startProvider();
  spine = await startSpine({
    now: () => Date.now() + skew,
    toml: toml(`first_event_timeout_ms = ${EVENT_MS}\nhead_timeout_ms = 1000`),
  });
});
afterAll(async () => {
  await spine.stop();
  await slow.stop();
});
beforeEach(() => {
  skew += 400_000;
  for (const { log } of [slow, spine.provider]) log.length = 0;
});
afterEach(async () => {
  expect(await spine.faults()).toEqual([]);
});

const SLOW_FIRST = { model: 'acme/two', provider: { order: ['Slow', 'Quick'] } };
const call = (more: object = {}, signal?: AbortSignal) =>
  spine.post('/chat/completions', ask('hello !tokens:5', { ...SLOW_FIRST, ...more }), {}, signal);

test.each([
  ['no head', { headDelayMs: Infinity }],
  ['a head and no event', { stallAt: 0, stallUntil: new Promise(() => {}) }],
] as const)('a stream with %s in time goes to the next provider, and is paid there', async (_what, instruction) => {
  slow.instruct(instruction);
  const before = await spine.balance();
  const response = await call({ stream: true });
  expect(response.status).toBe(200);
  await response.text();
  expect([slow.log.length, spine.provider.log.length]).toEqual([1, 1]);
  expect(await spine.generation(response.headers.get('x-generation-id'))).toMatchObject({
    state: 'settled',
    provider_name: 'Quick',
  });
  await spine.quiet();
  expect(before.available - (await spine.balance()).available).toBe(
    BigInt(2 * spine.provider.log[0]!.promptTokens + 2 * 5),
  );
});

test('an answer that is not streamed has the time of its head', async () => {
  slow.instruct({ headDelayMs: EVENT_MS + 200 });
  const patient = await call();
  expect(patient.headers.get('x-provider')).toBe('Slow');
  await patient.text();
});

test('a reload changes the times', async () => {
  spine.writeFile(toml('first_event_timeout_ms = 60000'));
  const reply = await fetch(`${spine.origin}/admin/v1/reload`, {
    method: 'POST',
    headers: { authorization: `Bearer ${spine.adminKey}` },
  });
  expect(reply.status, await reply.text()).toBe(200);
  slow.instruct({ headDelayMs: EVENT_MS + 300 });
  const response = await call({ stream: true });
  await response.text();
  expect(response.headers.get('x-provider')).toBe('Slow');
});

test('whoever left a stream before its first event is sent to another provider, and others are not', async () => {
  slow.instruct({ headDelayMs: Infinity });
  const gone = new AbortController();
  const leaving = call({ stream: true }, gone.signal).catch(() => null);
  await expect.poll(() => slow.log.length).toBe(1);
  skew += 5_000;
  gone.abort();
  await leaving;
  await spine.quiet();
  const again = await call({ stream: true });
  await again.text();
  expect(again.headers.get('x-provider')).toBe('Quick');
  const { key } = await spine.tenant('another', '1');
  const other = await spine.post('/chat/completions', ask('hello !tokens:5', { ...SLOW_FIRST, stream: true }), {
    authorization: `Bearer ${key}`,
  });
  await other.text();
  expect(other.headers.get('x-provider')).toBe('Slow');
});
