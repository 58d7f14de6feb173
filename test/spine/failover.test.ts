import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { earningsOf } from '#billing';
import { startProvider, type Instruction, type TestProvider } from '../support/provider.ts';
import { ask, events, modelBlock, startSpine, UNHURRIED, type Spine } from '../support/spine.ts';
import { unlessStalled } from '../support/unless-stalled.ts';

// A provider that fails before its first byte is replaced by the next; the consumer sees one call, at the price of
// who served it.

let second: TestProvider;
let spine: Spine;
/** Gives up soon on a provider that says nothing. Only the case of that is asked here. */
let hasty: Spine;
let skew = 0;

beforeAll(async () => {
  second = await startProvider();
  const startFor = (headMs: number) =>
    startSpine({
      now: () => Date.now() + skew,
      toml: `${UNHURRIED}
[upstream]
head_timeout_ms = ${headMs}
cooldown_ms = 0
${modelBlock({ provider: 'Second', url: second.url, prompt: 3, completion: 5 })}
${modelBlock({ name: 'test/nobody', provider: 'Closed', url: 'http://127.0.0.1:9/v1' })}
${modelBlock({ name: 'test/nobody', provider: 'Second', url: second.url, prompt: 3, completion: 5 })}`,
    });
  [spine, hasty] = await Promise.all([startFor(60_000), startFor(500)]);
});
afterAll(async () => {
  await spine.stop();
  await hasty.stop();
  await second.stop();
});
beforeEach(() => {
  // Retries are bounded within any ten seconds; every test begins with a whole budget.
  skew += 20_000;
  for (const { provider } of [spine, hasty]) provider.log.length = 0;
  second.log.length = 0;
});
afterEach(async () => {
  for (const each of [spine, hasty]) expect(await each.faults()).toEqual([]);
});

const TEST_FIRST = { provider: { order: ['Test', 'Second'] } };

const FAILURES: readonly (readonly [string, Instruction])[] = [
  ['status 500', { status: 500 }],
  ['status 503 with a page of HTML', { status: 503, errorBody: 'html' }],
  ['status 502 without a body', { status: 502, errorBody: 'empty' }],
  ['status 500 with garbage', { status: 500, errorBody: 'garbage' }],
  ['status 429, its own limit', { status: 429, retryAfterS: 7 }],
  ['status 401, a key of ours that it does not take', { status: 401 }],
  ['status 403', { status: 403 }],
  ['status 404, a model that it no longer has', { status: 404 }],
  ['status 302', { status: 302 }],
  ['a close before the head', { cutHeadAt: 0 }],
  ['a close within the head', { cutHeadAt: 25 }],
];

describe.each(['whole', 'streamed'] as const)('%s', (kind) => {
  const stream = kind === 'streamed';
  test.each(FAILURES)('%s: the next provider serves', (_name, failure) => servedByTheNext(spine, failure));
  test('a head that does not come: the next provider serves', () =>
    // The next one has to answer in time, too.
    unlessStalled(100, async () => {
      skew += 20_000;
      for (const { log } of [hasty.provider, second]) log.length = 0;
      await servedByTheNext(hasty, { headDelayMs: Infinity });
    }));

  async function servedByTheNext(spine: Spine, failure: Instruction): Promise<void> {
    // A connection that had served may have been idle: the same request goes out on a new one.
    const tries = failure.cutHeadAt === 0 ? 2 : 1;
    spine.provider.instruct(...Array.from({ length: tries }, () => failure));
    const before = await spine.balance();
    const locks = await spine.locks();
    const earned = async () =>
      (
        await spine.app.ledger.balance(
          earningsOf(spine.app.catalog.offers().find((offer) => offer.provider.name === 'Second')!.provider.id),
        )
      )?.available ?? 0n;
    const earnedBefore = await earned();
    const response = await spine.post('/chat/completions', ask('hello !tokens:5', { stream, ...TEST_FIRST }));
    expect(response.status).toBe(200);
    const text = await response.text();
    expect([spine.provider.log.length, second.log.length]).toEqual([tries, 1]);
    const usage = stream
      ? (events(text).at(-2) as { usage: { cost: number } }).usage
      : (JSON.parse(text) as { usage: { cost: number } }).usage;
    await spine.quiet();
    const paid = before.available - (await spine.balance()).available;
    expect(paid).toBe(BigInt(3 * second.log[0]!.promptTokens + 5 * 5));
    expect((await earned()) - earnedBefore).toBe(paid);
    expect(usage.cost).toBe(Number(paid) / 1e6);
    expect(response.headers.get('x-provider')).toBe('Second');
    const generation = await spine.generation(response.headers.get('x-generation-id'));
    expect(generation).toMatchObject({
      state: 'settled',
      provider_name: 'Second',
      cost_micro_usdc: Number(paid),
      status: 200,
      error_code: null,
      failed_attempts: [
        {
          provider: 'Test',
          service: 'test/model',
          upstream_status: failure.status ?? null,
          duration_ms: expect.any(Number),
        },
      ],
    });
    // One call id, one lock, and the same id in the reply.
    expect((await spine.locks()).filter((id) => !locks.includes(id))).toEqual([generation.id]);
    expect(text).toContain(`"id":"${generation.id}"`);
  }

  test('a refused connection: the next provider serves', async () => {
    const response = await spine.post(
      '/chat/completions',
      ask('hello', { model: 'test/nobody', stream, provider: { order: ['Closed', 'Second'] } }),
    );
    expect(response.status).toBe(200);
    await response.text();
    expect(response.headers.get('x-provider')).toBe('Second');
    expect(second.log).toHaveLength(1);
  });

  test('both fail: one error, nothing is charged', async () => {
    spine.provider.instruct({ status: 500 });
    second.instruct({ status: 500 });
    const before = await spine.balance();
    const response = await spine.post('/chat/completions', ask('hello', { stream, ...TEST_FIRST }));
    expect(response.status).toBe(500);
    expect(await response.json()).toMatchObject({ error: { type: 'provider_unavailable', code: 500 } });
    await spine.quiet();
    expect(await spine.balance()).toEqual(before);
  });
});

test('the reply broke off before its first byte, after a good head: the next provider serves', async () => {
  spine.provider.instruct({ cutAt: 0 });
  const response = await spine.post('/chat/completions', ask('hello !tokens:5', { stream: true, ...TEST_FIRST }));
  const text = await response.text();
  expect(events(text).at(-1)).toBe('[DONE]');
  expect(second.log).toHaveLength(1);
});

test('not streamed, a reply that is no JSON: the next provider serves', async () => {
  spine.provider.instruct({ usage: 'nan-literal' });
  const response = await spine.post('/chat/completions', ask('hello !tokens:5', TEST_FIRST));
  expect(response.status).toBe(200);
  expect(response.headers.get('x-provider')).toBe('Second');
});

test('a stream that breaks after its first byte is not begun again elsewhere', async () => {
  spine.provider.instruct({ tokens: 20, cutAt: 1500 });
  const before = await spine.balance();
  const response = await spine.post('/chat/completions', ask('hello', { stream: true, ...TEST_FIRST }));
  const text = await response.text();
  const last = events(text).at(-1) as { error: { type: string; code: number }; choices: { finish_reason: string }[] };
  expect(last.error).toMatchObject({ type: 'provider_unavailable', code: 500 });
  expect(last.choices[0]!.finish_reason).toBe('error');
  expect(text).not.toContain('[DONE]');
  expect(second.log).toHaveLength(0);
  await spine.quiet();
  expect(await spine.balance()).toEqual(before);
});

test('the provider key goes to the provider, the consumer key does not, and neither comes back', async () => {
  const response = await spine.post('/chat/completions', ask('hello'), {
    'x-secret': 'consumer-canary',
    cookie: 'consumer-canary',
  });
  const text = `${JSON.stringify([...response.headers])} ${await response.text()}`;
  const [call] = [...spine.provider.log, ...second.log];
  expect(call!.headers.authorization).toBe('Bearer upstream-secret-canary');
  expect(JSON.stringify(call!.headers)).not.toContain(spine.key);
  expect(JSON.stringify(call!.headers)).not.toContain('consumer-canary');
  expect(text).not.toContain('upstream-secret-canary');
  expect(spine.logs.join('')).not.toContain('upstream-secret-canary');
  expect(spine.logs.join('')).not.toContain(spine.key);
});

describe('in an outage', () => {
  // Each account learns of an outage by itself. So many accounts that call at once all begin at the broken provider.
  const ACCOUNTS = 40;
  let spine: Spine;
  beforeAll(async () => {
    spine = await startSpine({ toml: UNHURRIED + modelBlock({ provider: 'Second', url: second.url }) });
  });
  afterAll(() => spine.stop());
  const failures = (count: number) => Array.from({ length: count }, () => ({ status: 500 }));
  const sent = () => [spine.provider.log.length, second.log.length];
  const fromAll = async (name: string): Promise<readonly number[]> => {
    const keys = await Promise.all(
      Array.from({ length: ACCOUNTS }, async (_, nth) => (await spine.tenant(`${name}-${nth}`, '1')).key),
    );
    const responses = await Promise.all(
      keys.map((key) =>
        spine.post('/chat/completions', ask('hello !tokens:1', TEST_FIRST), { authorization: `Bearer ${key}` }),
      ),
    );
    expect(await spine.faults()).toEqual([]);
    return responses.map(({ status }) => status);
  };

  test('of one provider, the first try at another one that works is no retry', async () => {
    spine.provider.instruct(...failures(ACCOUNTS));
    expect(new Set(await fromAll('served'))).toEqual(new Set([200]));
    expect(second.log.length).toBe(ACCOUNTS);
  });

  test('of all providers, retries are bounded', async () => {
    for (const { instruct } of [spine.provider, second]) instruct(...failures(4 * ACCOUNTS));
    // These learn that both are down.
    expect(await fromAll('first')).toContain(500);
    const [test, other] = sent();
    expect(await fromAll('later')).not.toContain(200);
    const [testNow, otherNow] = sent();
    // The budget is a fifth of the calls of ten seconds, and ten.
    expect(testNow! + otherNow! - test! - other! - ACCOUNTS).toBeLessThanOrEqual((3 * ACCOUNTS) / 5 + 10);
  });
});
