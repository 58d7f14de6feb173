import type OpenAI from 'openai';
import type { Offer } from '#catalog';
import { createHttpUpstream } from '#network';
import { createProviderBatchApi } from '#openai';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { completionOf, resultOf, startBatchProvider, textOf } from '../../support/batch-provider.ts';
import { modelBlock, startSpine, UNHURRIED } from '../../support/spine.ts';
import { begin, chatLine, clientAt, ended, resultsOf, until } from './support/batch-client.ts';
import { ofFile, spineOfFile } from '../../support/of-file.ts';

// Batches whose lines the provider gets in a batch of its own, at half of the price.

const MODEL = 'lot/model';
const NATIVE = 'lot/native';
const EMBEDDER = 'lot/embedder';
/** 11 prompt tokens at 0.5 and 5 completion tokens at 1 USD per 1M: 10.5 micro-USD, rounded up. */
const COST = 11n;
/** 18 bytes of texts, 64 for the call and 16 for the message at 0.5, 50 completion tokens at 1. */
const LOCK = 99n;
let client: OpenAI;

const PARAM = 'batches = true';
const DEEP = process.env['TOLLGATE_DEEP'] === '1';

/** `rise`: how many times the usual prices. `more`: further models. */
function toml(rise = 1, more = ''): string {
  const model = (name: string, of: { params?: string; lines?: string } = {}) =>
    modelBlock({
      name,
      provider: 'Lot',
      url: provider.url,
      prompt: rise,
      completion: 2 * rise,
      pricing: `service_tiers = { batch = { prompt = ${0.5 * rise}, completion = ${rise} } }`,
      lines: of.lines ?? '',
      params: `${PARAM}\n${of.params ?? ''}`,
    });
  return [
    `${UNHURRIED}[batches]\nprovider_look_ms = 20\n`,
    model(MODEL),
    model(NATIVE, { params: 'wires = ["responses"]' }),
    model(EMBEDDER, { lines: 'output_modalities = ["embeddings"]' }),
    more,
  ].join('');
}

/** The gateway takes this configuration. */
async function reload(text: string): Promise<void> {
  spine.writeFile(text);
  const headers = { authorization: `Bearer ${spine.adminKey}` };
  expect((await fetch(`${spine.origin}/admin/v1/reload`, { method: 'POST', headers })).status).toBe(200);
}

const provider = ofFile(startBatchProvider, (one) => one.stop());
const spine = spineOfFile(() => ({ toml: toml() }));
beforeAll(() => {
  client = clientAt(`${spine.origin}/v1`, spine.key);
});
beforeEach(() => {
  provider.log.length = provider.single.length = provider.batches.length = 0;
  provider.files.clear();
  provider.intercept = provider.after = null;
  provider.isEager = false;
});

const PING = 'ping !tokens:5';
const line = (customId: string, more: object = {}) => chatLine(customId, PING, { model: MODEL, ...more });
const sent = () => until(() => provider.batches.length > 0).then(() => provider.batches[0]!);

describe('a batch of a provider that takes batches', () => {
  test('gets all lines in one batch of the provider, each charged at half of the price', async () => {
    const before = await spine.balance();
    const begun = await begin(client, [line('a'), line('b'), line('c')]);
    const there = await sent();
    expect(there).toMatchObject({ endpoint: '/v1/chat/completions', metadata: { tollgate: expect.any(String) } });
    expect(there.lines).toHaveLength(3);
    for (const each of there.lines)
      expect(each).toEqual({
        custom_id: expect.stringMatching(/^gen-/),
        method: 'POST',
        url: '/v1/chat/completions',
        body: { model: 'upstream-of-Lot', messages: [{ role: 'user', content: PING }], max_tokens: 50 },
      });
    expect(new Set(there.lines.map(({ custom_id }) => custom_id)).size).toBe(3);
    expect(await client.batches.retrieve(begun.id)).toMatchObject({
      status: 'in_progress',
      request_counts: { total: 3, completed: 0, failed: 0 },
    });
    expect((await spine.balance()).locked).toBe(3n * LOCK);
    provider.end(there, 'completed');
    const batch = await ended(client, begun.id);
    expect(batch).toMatchObject({
      status: 'completed',
      model: MODEL,
      request_counts: { total: 3, completed: 3, failed: 0 },
      usage: { input_tokens: 33, output_tokens: 15 },
    });
    const { output, errors } = await resultsOf(client, batch);
    expect(errors).toEqual([]);
    expect(output.map(({ custom_id }) => custom_id)).toEqual(['a', 'b', 'c']);
    for (const { response } of output) {
      expect(response!.body.choices![0]!.message.content).toBe(PING);
      const { id } = response!.body;
      expect(await spine.generation(id!)).toMatchObject({ state: 'settled', cost_micro_usdc: Number(COST) });
    }
    expect(await spine.balance()).toEqual({ available: before.available - 3n * COST, locked: 0n });
    expect(provider.single).toEqual([]);
    expect(batch.tollgate.locked_usd).toBe('0.000297');
    // Nothing of it stays at the provider.
    await until(() => provider.files.size === 0);
  });

  test.each([
    ...(DEEP ? [{ most: '10,000 lines', lines: 10_001, prompt: PING, batches: [10_000, 1] }] : []),
    { most: '16 MiB', lines: 170, prompt: `${PING}${' '.repeat(100_000)}`, batches: [167, 3] },
  ])('gets at most $most in each', async ({ lines, prompt, batches }) => {
    provider.isEager = true;
    const { id } = await begin(
      client,
      Array.from({ length: lines }, (_, at) => chatLine(String(at), prompt, { model: MODEL })),
    );
    const batch = await ended(client, id, Math.max(60_000, 60 * lines));
    expect(batch).toMatchObject({ status: 'completed', request_counts: { completed: lines } });
    expect(provider.batches.map((one) => one.lines.length)).toEqual(batches);
  });

  test('takes the answers in any order, errors, and lines without an answer', async () => {
    await spine.quiet();
    const before = await spine.balance();
    const { id } = await begin(
      client,
      ['a', 'b', 'c', 'd'].map((name) => line(name, { user: name })),
    );
    const there = await sent();
    const named = new Map(there.lines.map((each) => [each.body['user'], each]));
    const results = [
      resultOf(named.get('c')!, completionOf('late')),
      resultOf(named.get('b')!, { error: { message: 'bad Bearer upstream-secret-canary', type: 'x' } }, 400),
      resultOf(named.get('a')!, completionOf('first')),
      // A second answer, a line of nobody, and what is no line.
      resultOf(named.get('a')!, completionOf('second', { prompt_tokens: 80, completion_tokens: 50 })),
      resultOf({ custom_id: 'gen-of-somebody-else' }, completionOf('x')),
      'no JSON',
    ];
    provider.end(there, 'completed', (each) => (each === there.lines[0] ? results.join('\n') : null));
    const batch = await ended(client, id);
    const { output, errors } = await resultsOf(client, batch);
    expect(output.map((each) => [each.custom_id, each.response!.body.choices![0]!.message.content])).toEqual([
      ['a', 'first'],
      ['c', 'late'],
    ]);
    expect(errors).toMatchObject([
      { custom_id: 'b', response: { status_code: 400 } },
      { custom_id: 'd', response: null, error: { code: 'provider_no_answer' } },
    ]);
    expect(JSON.stringify(errors)).not.toContain('canary');
    expect(await spine.balance()).toEqual({ available: before.available - 2n * COST, locked: 0n });
  });

  test('charges no claim beyond its lock, and no dearer tier', async () => {
    const before = await spine.balance();
    const { id } = await begin(client, [line('a')]);
    const there = await sent();
    const claimed = { ...completionOf(textOf(there.lines[0]!), { prompt_tokens: 1e6, completion_tokens: 1e6 }) };
    provider.end(there, 'completed', (each) => resultOf(each, { ...claimed, service_tier: 'priority' }));
    await ended(client, id);
    const after = await spine.balance();
    expect(after.locked).toBe(0n);
    expect(before.available - after.available).toBe(LOCK);
  });

  test('that is cancelled ends at the provider too: what it has made is charged, the rest has no result', async () => {
    const before = await spine.balance();
    const { id } = await begin(client, [line('a'), line('b'), line('c')]);
    const there = await sent();
    expect(await client.batches.cancel(id)).toMatchObject({ status: 'cancelling' });
    await until(() => there.status === 'cancelling');
    expect((await client.batches.retrieve(id)).status).toBe('cancelling');
    provider.end(there, 'cancelled', (each) => (each === there.lines[1] ? resultOf(each, completionOf('made')) : null));
    const batch = await ended(client, id);
    expect(batch).toMatchObject({ status: 'cancelled', request_counts: { total: 3, completed: 1, failed: 0 } });
    expect((await resultsOf(client, batch)).output).toHaveLength(1);
    expect(await spine.balance()).toEqual({ available: before.available - COST, locked: 0n });
  });

  test('fails its lines free, with the words of the provider, if the provider refuses the batch', async () => {
    const before = await spine.balance();
    const { id } = await begin(client, [line('a'), line('b')]);
    const there = await sent();
    there.errors = { data: [{ code: 'model_not_found', message: 'no batches of upstream-secret-canary' }] };
    provider.end(there, 'failed', () => null);
    const batch = await ended(client, id);
    expect(batch).toMatchObject({ status: 'completed', request_counts: { total: 2, completed: 0, failed: 2 } });
    const { errors } = await resultsOf(client, batch);
    const message = 'The provider refused the batch: no batches of [redacted]';
    for (const { error } of errors) expect(error).toEqual({ code: 'provider_batch_failed', message });
    expect(await spine.balance()).toEqual({ available: before.available, locked: 0n });
    expect(provider.batches).toHaveLength(1);
    expect(provider.single).toEqual([]);
  });

  test.each(['/files', '/batches'])('fails its lines free if POST %s is refused', async (path) => {
    const before = await spine.balance();
    provider.intercept = (method, asked) =>
      method === 'POST' && asked === path
        ? { status: 403, body: { error: { message: 'not for upstream-secret-canary' } } }
        : undefined;
    const { id } = await begin(client, [line('a')]);
    const { errors } = await resultsOf(client, await ended(client, id));
    expect(errors).toMatchObject([{ response: null, error: { code: 'provider_batch_failed' } }]);
    expect(errors[0]!.error!.message).toBe('Lot answered 403 about a batch: not for [redacted]');
    expect(await spine.balance()).toEqual({ available: before.available, locked: 0n });
  });

  test('is refused without the secrets of the provider, whichever way it writes and cuts them', async () => {
    const tooLong = 'x'.repeat(300 * 1024);
    const message = `${'a '.repeat(100)}upstream\\u002dsecret\\u002dcanary`;
    provider.intercept = (method, path) =>
      method === 'POST' && path === '/files'
        ? { status: 403, body: `{"error":{"message":"${message}"},"more":"${tooLong}"}` }
        : undefined;
    const { id } = await begin(client, [line('a')]);
    const { errors } = await resultsOf(client, await ended(client, id));
    expect(errors[0]!.error!.message).toMatch(/ a \[redacted\]$/);
    provider.intercept = null;
    const next = await begin(client, [line('a')]);
    const there = await sent();
    there.errors = { data: [{ code: 'x', message: `${'a '.repeat(144)}upstream-secret-canary` }] };
    provider.end(there, 'failed', () => null);
    const cut = await resultsOf(client, await ended(client, next.id));
    expect(cut.errors[0]!.error!.message).toMatch(/ a \[redacted\]$/);
  });

  test('is uploaded although another provider does not answer its upload', async () => {
    const silent = await startBatchProvider();
    silent.intercept = () => 'silence';
    const url = silent.url;
    const pricing = 'service_tiers = { batch = { prompt = 0.5, completion = 1 } }';
    const other = { name: 'mute/model', provider: 'Mute', prompt: 1, completion: 2 };
    await reload(toml(1, modelBlock({ ...other, url, pricing, lines: '', params: PARAM })));
    try {
      const stuck = await begin(client, [line('a', { model: 'mute/model' })]);
      await until(() => silent.log.includes('POST /files'));
      provider.isEager = true;
      const { id } = await begin(client, [line('a')]);
      expect(await ended(client, id)).toMatchObject({ request_counts: { completed: 1, failed: 0 } });
      expect(silent.log).toEqual(['POST /files']);
      await client.batches.cancel(stuck.id);
      await silent.stop();
      await ended(client, stuck.id);
    } finally {
      await reload(toml());
    }
  });

  test('whose file of results never ends does not keep a gateway from stopping', async () => {
    const other = await startSpine({ toml: toml() });
    provider.isEager = true;
    provider.intercept = (_, path) => (path.endsWith('/content') ? 'drip' : undefined);
    await begin(clientAt(`${other.origin}/v1`, other.key), [line('a')]);
    await until(() => provider.log.some((each) => each.endsWith('/content')));
    await other.stop();
  });

  test('is sent again if the provider is busy, away, or loses the connection', async () => {
    const before = await spine.balance();
    const failed = new Map<string, number>();
    provider.isEager = true;
    provider.intercept = (method, path) => {
      const route = `${method} ${path
        .split('/')
        .filter((part) => !/\d/.test(part))
        .join('/')}`;
      const times = failed.get(route) ?? 0;
      failed.set(route, times + 1);
      // A creation that was answered in another way than with 429 may have happened.
      if (route === 'POST /batches') return times < 2 ? { status: 429 } : undefined;
      return times > 2 ? undefined : times === 1 ? 'hang up' : { status: times === 0 ? 503 : 429 };
    };
    const { id } = await begin(client, [line('a')]);
    const batch = await ended(client, id);
    expect(batch).toMatchObject({ status: 'completed', request_counts: { completed: 1, failed: 0 } });
    expect(Object.fromEntries(failed)).toMatchObject({ 'POST /files': 4, 'POST /batches': 3, 'GET /files/content': 4 });
    expect(provider.batches).toHaveLength(1);
    expect(await spine.balance()).toEqual({ available: before.available - COST, locked: 0n });
  });

  test('is not sent twice if the answer to its creation never comes: it is found in the list', async () => {
    const before = await spine.balance();
    provider.isEager = true;
    provider.after = (method, path) => (method === 'POST' && path === '/batches' ? 'hang up' : undefined);
    const { id } = await begin(client, [line('a'), line('b')]);
    const batch = await ended(client, id);
    expect(batch).toMatchObject({ status: 'completed', request_counts: { completed: 2, failed: 0 } });
    expect(provider.batches).toHaveLength(1);
    expect(provider.log.filter((each) => each === 'POST /batches')).toHaveLength(1);
    expect(provider.log.some((each) => each.startsWith('GET /batches?'))).toBe(true);
    expect(await spine.balance()).toEqual({ available: before.available - 2n * COST, locked: 0n });
  });
});

describe('lines', () => {
  test('of other models, and lines that ask for another tier, are called one by one', async () => {
    const before = await spine.balance();
    provider.isEager = true;
    spine.provider.log.length = 0;
    const { id } = await begin(client, [
      line('a'),
      chatLine('b', PING),
      line('c', { service_tier: 'flex' }),
      line('d', { service_tier: 'batch' }),
    ]);
    const batch = await ended(client, id);
    expect(batch).toMatchObject({ status: 'completed', request_counts: { completed: 4, failed: 0 } });
    expect((await resultsOf(client, batch)).output.map((each) => each.custom_id)).toEqual(['a', 'b', 'c', 'd']);
    expect(spine.provider.log).toHaveLength(1);
    expect(provider.single).toHaveLength(1);
    expect(provider.batches[0]!.lines).toHaveLength(2);
    expect(JSON.stringify(provider.batches[0]!.lines)).not.toContain('service_tier');
    // Two at half of the price, b at the usual one, and c too: the model has no price for flex.
    expect(await spine.balance()).toEqual({ available: before.available - 2n * COST - 21n - 21n, locked: 0n });
  });

  test('are sent in turns if max_cost is less than all may cost', async () => {
    const before = await spine.balance();
    provider.isEager = true;
    const cap = { max_cost: '0.000210' };
    // Two locks of 99 fit into 210, then another one into what those have left.
    const { id } = await begin(
      client,
      ['a', 'b', 'c', 'd', 'e'].map((name) => line(name)),
      cap,
    );
    const batch = await ended(client, id);
    expect(batch).toMatchObject({ status: 'completed', request_counts: { completed: 5, failed: 0 } });
    expect(provider.batches.map(({ lines }) => lines.length)).toEqual([2, 1, 1, 1]);
    expect(await spine.balance()).toEqual({ available: before.available - 5n * COST, locked: 0n });
  });

  test('of the Responses API go to a provider that speaks it as they are', async () => {
    const before = await spine.balance();
    provider.isEager = true;
    const body = { model: NATIVE, input: PING, max_output_tokens: 50 };
    const ofResponses = { custom_id: 'r', method: 'POST', url: '/v1/responses', body };
    const { id } = await begin(client, [ofResponses], { endpoint: '/v1/responses' });
    const { output } = await resultsOf(client, await ended(client, id));
    expect(output).toMatchObject([
      { response: { status_code: 200, body: { object: 'response', status: 'completed' } } },
    ]);
    expect(JSON.stringify(output)).toContain('native');
    expect(provider.batches[0]).toMatchObject({ endpoint: '/v1/responses', lines: [{ url: '/v1/responses' }] });
    expect((await spine.balance()).available).toBe(before.available - COST);
  });

  test('of embeddings are charged at half of the price', async () => {
    const before = await spine.balance();
    provider.isEager = true;
    const ofEmbeddings = {
      custom_id: 'e',
      method: 'POST',
      url: '/v1/embeddings',
      body: { model: EMBEDDER, input: 'abc' },
    };
    const { id } = await begin(client, [ofEmbeddings], { endpoint: '/v1/embeddings' });
    const { output } = await resultsOf(client, await ended(client, id));
    expect(output).toMatchObject([{ response: { status_code: 200, body: { data: [{ embedding: [0.5, 0.25] }] } } }]);
    expect(provider.batches[0]).toMatchObject({ endpoint: '/v1/embeddings' });
    // 11 tokens at 0.5.
    expect((await spine.balance()).available).toBe(before.available - 6n);
  });

  test('cost what they cost when they were sent, whatever became of the price and of the key', async () => {
    const { key, hash } = await spine.tenant('leaver', '1');
    const leaver = clientAt(`${spine.origin}/v1`, key);
    const { id } = await begin(leaver, [line('a')]);
    const there = await sent();
    await reload(toml(3));
    const own = { authorization: `Bearer ${key}` };
    expect((await fetch(`${spine.url}/keys/${hash}`, { method: 'DELETE', headers: own })).status).toBe(200);
    provider.end(there, 'completed');
    await until(() => provider.files.size === 0);
    await spine.quiet();
    const lock = there.lines[0]!.custom_id;
    expect(await spine.app.ledger.find(lock)).toMatchObject({ state: 'settled', charged: COST });
    expect(await spine.app.ledger.balance('escrow:tollgate:local:leaver')).toEqual({
      available: 1_000_000n - COST,
      locked: 0n,
    });
    await reload(toml());
    expect(id).toMatch(/^batch_/);
  });

  test.each([
    ['takes no batches any more', /never/],
    ['has no price for batches any more either', /service_tiers = .*/g],
  ])('that a provider has are answered although it %s', async (_, gone) => {
    const before = await spine.balance();
    const { id } = await begin(client, [line('a'), line('b')]);
    const there = await sent();
    await reload(toml().replaceAll(PARAM, 'batches = false').replace(gone, ''));
    try {
      provider.end(there, 'completed');
      expect(await ended(client, id)).toMatchObject({ request_counts: { completed: 2, failed: 0 } });
      expect(provider.files.size).toBe(0);
      expect(await spine.balance()).toEqual({ available: before.available - 2n * COST, locked: 0n });
    } finally {
      await reload(toml());
    }
  });

  test('of responses and completions are sent as chat requests, and answered in their form', async () => {
    provider.isEager = true;
    const body = { model: MODEL, input: PING, max_output_tokens: 50 };
    const ofResponses = { custom_id: 'r', method: 'POST', url: '/v1/responses', body };
    const { id } = await begin(client, [ofResponses], { endpoint: '/v1/responses' });
    const { output } = await resultsOf(client, await ended(client, id));
    expect(output).toMatchObject([
      { response: { status_code: 200, body: { object: 'response', status: 'completed' } } },
    ]);
    expect(provider.batches[0]!.lines[0]).toMatchObject({ url: '/v1/chat/completions' });
  });
});

test('an answer about a batch that never ends is given up', async () => {
  provider.intercept = () => 'drip';
  const upstream = createHttpUpstream({ headTimeoutMs: 60_000, idleTimeoutMs: 60_000, connectionsMax: 1 });
  const headers = { authorization: 'Bearer upstream-secret-canary' };
  const endpoint = { kind: 'direct', baseUrl: provider.url, headers };
  const offer = { provider: { id: 'lot', name: 'Lot' }, endpoint, variants: {} } as unknown as Offer;
  const send: typeof upstream.send = (_, ...of) => upstream.send(endpoint as never, ...of);
  const api = createProviderBatchApi({ upstream: { send }, offerOf: () => offer, askMs: 200 });
  try {
    await expect(api.lookUp({ offer: 'o', account: 'a' }, 'batch_1')).rejects.toThrow(/took too long/);
  } finally {
    await upstream.close();
  }
});

test('a call that is no line of a batch does not get the price of batches', async () => {
  const before = await spine.balance();
  const completion = await client.chat.completions.create({
    model: MODEL,
    messages: [{ role: 'user', content: PING }],
    max_tokens: 50,
    service_tier: 'batch' as 'auto',
  });
  expect(completion.usage).toMatchObject({ prompt_tokens: 11, completion_tokens: 5 });
  expect(provider.single[0]).not.toHaveProperty('service_tier');
  await spine.quiet();
  expect((await spine.balance()).available).toBe(before.available - 21n);
});
