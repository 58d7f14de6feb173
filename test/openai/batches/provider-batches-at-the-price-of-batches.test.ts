import type OpenAI from 'openai';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { completionOf, resultOf, startBatchProvider, type BatchProvider } from '../../support/batch-provider.ts';
import { modelBlock, startSpine, UNHURRIED, type Spine } from '../../support/spine.ts';
import { begin, chatLine, clientAt, ended, resultsOf, until } from './support/batch-client.ts';

/*
 * What a provider gets in a batch costs the price of batches, and nothing else does. Its answers are settled,
 * however little room the gateway has at the moment.
 */

/** Prompts from a cache cost less at the usual price than in a batch. */
const PRICES =
  'input_cache_read = 0.5\nservice_tiers = { batch = { prompt = 1, completion = 4, input_cache_read = 1 } }';
const BODIES = [
  'chat_body_bytes_max = 65_536\nbody_bytes_max = 65_536\nmedia_body_bytes_max = 65_536',
  'bodies_bytes_max = 1_048_576\nbodies_wait_ms = 0\n',
].join('\n');

let provider: BatchProvider;
let spine: Spine;
let client: OpenAI;
beforeAll(async () => {
  provider = await startBatchProvider();
  const at = (name: string, of: string, more: object) =>
    modelBlock({ name, provider: of, url: provider.url, prompt: 2, completion: 8, ...more });
  const batched = { pricing: PRICES, params: 'batches = true' };
  spine = await startSpine({
    toml: [
      `${UNHURRIED}${BODIES}[batches]\nprovider_look_ms = 20\n`,
      at('lot/model', 'Lot', batched),
      at('lot/alone', 'Lot', batched),
      // They are never there.
      at('lot/down', 'Down', { url: 'http://127.0.0.1:9/v1' }),
      at('lot/model', 'DownToo', { url: 'http://127.0.0.1:9/v1' }),
      at('lot/dear', 'Dear', { ...batched, pricing: 'service_tiers = { batch = { prompt = 900, completion = 900 } }' }),
      at('lot/dear', 'Usual', {}),
    ].join(''),
  });
  client = clientAt(`${spine.origin}/v1`, spine.key);
});
beforeEach(() => {
  provider.log.length = provider.single.length = provider.batches.length = 0;
  provider.isEager = false;
});
afterAll(async () => {
  try {
    expect(await spine.faults()).toEqual([]);
  } finally {
    await spine.stop();
    await provider.stop();
  }
});

const sent = () => until(() => provider.batches.length > 0).then(() => provider.batches[0]!);
const PING = 'ping !tokens:5';
/** 11 prompt tokens at 1 and 5 completion tokens at 4. */
const COST = 31n;

test.each([
  { model: 'lot/down', models: ['lot/model'] },
  { model: 'lot/model', provider: { order: ['DownToo', 'Lot'] } },
])('no line falls back to a single call at the price of batches: %j', async (ask) => {
  const before = await spine.balance();
  provider.isEager = true;
  const { id } = await begin(client, [chatLine('a', PING, ask)]);
  const batch = await ended(client, id);
  expect(provider.single).toEqual([]);
  // When the line is tried again, the provider that is down rests, and the other one may get it in a batch.
  const cost = provider.batches.length === 0 ? 0n : COST;
  expect(batch.request_counts).toMatchObject(cost === 0n ? { failed: 1 } : { completed: 1 });
  expect(await spine.balance()).toEqual({ available: before.available - cost, locked: 0n });
});

test('a provider whose batches cost more than another one is not asked for one', async () => {
  const before = await spine.balance();
  const { id } = await begin(client, [chatLine('a', PING, { model: 'lot/dear' })]);
  await ended(client, id);
  expect(provider.batches).toEqual([]);
  // 11 prompt tokens at 2 and 5 completion tokens at 8.
  expect((await spine.balance()).available).toBe(before.available - 62n);
});

describe('provider.max_price', () => {
  // The usual prices are 2 and 8, those of batches 1 and 4.
  const between = { provider: { max_price: { prompt: 1, completion: 4 } } };

  test.each(['lot/model', 'lot/alone'])('is compared with the price of batches: %s', async (model) => {
    const before = await spine.balance();
    provider.isEager = true;
    const { id } = await begin(client, [chatLine('a', PING, { model, ...between })]);
    expect(await ended(client, id)).toMatchObject({ request_counts: { completed: 1, failed: 0 } });
    expect(provider.single).toEqual([]);
    expect(await spine.balance()).toEqual({ available: before.available - COST, locked: 0n });
  });

  test.each([
    ['of batches', 'lot/model', { provider: { max_price: { prompt: 0.9 } } }],
    ['of batches', 'lot/alone', { provider: { max_price: { prompt: 0.9 } } }],
    ['of a line that goes alone', 'lot/model', { ...between, service_tier: 'flex' }],
    ['of a line that goes alone', 'lot/alone', { ...between, service_tier: 'flex' }],
  ])('refuses a line if it is less than the price %s: %s', async (_, model, more) => {
    const before = await spine.balance();
    const { id } = await begin(client, [chatLine('a', PING, { model, ...more })]);
    const batch = await ended(client, id);
    expect(batch.errors!.data).toMatchObject([{ line: 1, message: expect.stringContaining('max_price') }]);
    expect([...provider.batches, ...provider.single]).toEqual([]);
    expect(await spine.balance()).toEqual(before);
  });

  test('of a call that is no line is compared with the usual price', async () => {
    const call = client.chat.completions.create({
      model: 'lot/model',
      messages: [{ role: 'user', content: PING }],
      max_tokens: 50,
      service_tier: 'batch' as 'auto',
      ...between,
    });
    const message = expect.stringContaining(
      'max_price.prompt is 1 USD per 1M tokens, but prompt of this call may cost 2',
    );
    await expect(call).rejects.toMatchObject({ status: 422, message });
  });
});

test.each([undefined, 'default', 'auto', 'flex', 'batch'])(
  'an answer that says it is of tier %s is charged as the batch that it came in',
  async (tier) => {
    const before = await spine.balance();
    const { id } = await begin(client, [chatLine('a', 'x'.repeat(4_000), { model: 'lot/model' })]);
    const usage = { prompt_tokens: 1_000, completion_tokens: 1, prompt_tokens_details: { cached_tokens: 1_000 } };
    provider.end(await sent(), 'completed', (line) =>
      resultOf(line, { ...completionOf('.', usage), ...(tier === undefined ? {} : { service_tier: tier }) }),
    );
    await ended(client, id);
    // 1,000 prompt tokens at 1 and a completion token at 4.
    expect(await spine.balance()).toEqual({ available: before.available - 1_004n, locked: 0n });
  },
);

test('all answers are settled, although the gateway has room for few of their requests at once', async () => {
  const before = await spine.balance();
  const names = ['a', 'b', 'c', 'd', 'e', 'f'];
  const { id } = await begin(
    client,
    names.map((name) => chatLine(name, 'x'.repeat(55_000), { model: 'lot/model' })),
  );
  await until(() => provider.batches.reduce((sum, { lines }) => sum + lines.length, 0) === names.length);
  for (const one of provider.batches) provider.end(one, 'completed', (line) => resultOf(line, completionOf('.')));
  const batch = await ended(client, id);
  expect(batch).toMatchObject({ request_counts: { total: 6, completed: 6, failed: 0 } });
  expect(await spine.balance()).toEqual({ available: before.available - 6n * COST, locked: 0n });
});

test('a key that a long error of the provider ends with is not shown in part', async () => {
  const { id } = await begin(client, [chatLine('a', PING, { model: 'lot/model' })]);
  const message = `${'x'.repeat(280)} upstream-secret-canary`;
  provider.end(await sent(), 'completed', ({ custom_id }) =>
    JSON.stringify({ id: 'r', custom_id, response: null, error: { code: 'x', message } }),
  );
  const { errors } = await resultsOf(client, await ended(client, id));
  expect(errors[0]!.error!.message).toContain('xxx [redacted]');
  expect(JSON.stringify(errors)).not.toContain('upstream-secret');
});
