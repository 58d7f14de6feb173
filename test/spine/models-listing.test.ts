import { describe, expect, test } from 'vitest';
import { dialIn, offeredModel } from '../support/dial-in.ts';
import { startProvider } from '../support/provider.ts';
import { ask, modelBlock } from '../support/spine.ts';
import { spineOfFile } from '../support/of-file.ts';

// `GET /models`: everything that can be called, in one answer that serves both shapes of the contract.

const spine = spineOfFile(() => ({
  toml: `${modelBlock({ provider: 'Second', url: '{provider}', prompt: 0.5, completion: 7.25, contextLength: 200_000 })}
${modelBlock({ name: 'author/family/deep:v2', provider: 'Deep', url: '{provider}' })}
${modelBlock({ name: 'plain', provider: 'Plain', url: '{provider}', prompt: 0, completion: 0 })}`,
}));

/** No credential: the listing is public. */
const get = (path: string, headers: Record<string, string> = {}) => fetch(`${spine.url}${path}`, { headers });

interface Listing {
  readonly object: string;
  readonly data: Record<string, unknown>[];
  readonly agents: unknown[];
  readonly image_models: unknown[];
  readonly video_models: unknown[];
  readonly tools: unknown[];
}
const list = async (query = '') => (await (await get(`/models${query}`)).json()) as Listing;

test('the superset shape', async () => {
  const listing = await list();
  expect(Object.keys(listing).sort()).toEqual([
    'agents',
    'data',
    'image_models',
    'links',
    'object',
    'tools',
    'total_count',
    'video_models',
  ]);
  expect(listing.object).toBe('list');
  expect(listing.data.map((item) => item['id'])).toEqual(['author/family/deep:v2', 'plain', 'test/model']);
  const item = listing.data.at(-1)!;
  expect(item).toMatchObject({
    id: 'test/model',
    name: 'test/model',
    object: 'model',
    display_name: 'Test: Model',
    owned_by: 'Test',
    context_length: 200_000,
    architecture: { modality: 'text+image->text', input_modalities: ['text', 'image'], output_modalities: ['text'] },
    // USD per token of the cheapest, as text.
    pricing: { prompt: '0.000001', completion: '0.000002', image: '0.001' },
  });
  expect(Number.isInteger(item['created'])).toBe(true);
  expect(item['supported_parameters']).toEqual(
    expect.arrayContaining(['temperature', 'top_p', 'max_tokens', 'stop', 'tools', 'stream']),
  );
  const providers = item['providers'] as { id: string; name: string; pricing: object }[];
  expect(providers.map(({ name, pricing }) => [name, pricing])).toEqual([
    ['Test', { prompt: 1, completion: 2, image: 0.001 }],
    ['Second', { prompt: 0.5, completion: 7.25, image: null }],
  ]);
  for (const { id } of providers) expect(id).toMatch(/^[1-9A-HJ-NP-Za-km-z]{32,44}$/);
});

describe('type and filter', () => {
  test.each([
    ['', 3],
    ['?type=chat', 3],
    ['?type=all', 3],
    ['?type=image', 0],
    ['?type=video', 0],
    ['?filter=models', 3],
    ['?filter=agents', 0],
    ['?type=all&filter=models', 3],
    ['?type=chat&filter=agents', 0],
    ['?unknown=parameter', 3],
  ])('%s', async (query, count) => {
    const listing = await list(query);
    expect(listing.data).toHaveLength(count);
    for (const group of ['agents', 'image_models', 'video_models', 'tools'] as const)
      expect(listing[group]).toEqual([]);
  });

  test.each([
    ['?type=audio', 'type'],
    ['?type=', 'type'],
    ['?type=CHAT', 'type'],
    ['?filter=tools', 'filter'],
    ['?filter=', 'filter'],
  ])('%s is 400', async (query, param) => {
    const response = await get(`/models${query}`);
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ error: { type: 'invalid_request', code: 400, param } });
  });
});

test('a key does no harm, nor does a wrong one', async () => {
  for (const authorization of [`Bearer ${spine.key}`, 'Bearer wrong', 'Basic x'])
    expect((await get('/models', { authorization })).status).toBe(200);
});

test('an unchanged listing is not sent again', async () => {
  const first = await get('/models');
  const etag = first.headers.get('etag')!;
  expect(etag).toMatch(/^"[^"]+"$/);
  await first.text();
  const again = await get('/models', { 'if-none-match': etag });
  expect(again.status).toBe(304);
  expect(await again.text()).toBe('');
  expect((await get('/models', { 'if-none-match': '"other"' })).status).toBe(200);
  expect((await get('/models?type=image', { 'if-none-match': etag })).status).toBe(200);
});

test('one model, and who serves it', async () => {
  for (const name of ['test/model', 'test%2Fmodel', 'author/family/deep:v2', 'plain']) {
    const item = (await (await get(`/models/${name}`)).json()) as { id: string };
    expect(item.id).toBe(decodeURIComponent(name));
    const response = await get(`/models/${name}/endpoints`);
    expect(response.status).toBe(200);
    const { data } = (await response.json()) as {
      data: { id: string; endpoints: { provider_name: string; status: number }[] };
    };
    expect(data.id).toBe(decodeURIComponent(name));
    expect(data.endpoints.length).toBe(item.id === 'test/model' ? 2 : 1);
    expect(data.endpoints[0]).toMatchObject({
      status: 0,
      health: 'untried',
      context_length: expect.any(Number) as number,
      pricing: { prompt: expect.any(String) as string },
    });
  }
});

test.each([
  '/models/test/nowhere',
  '/models/test/nowhere/endpoints',
  '/models/__proto__',
  '/models/%00',
  `/models/${'x'.repeat(400)}`,
])('%s is 404', async (path) => {
  const response = await get(path);
  expect(response.status).toBe(404);
  expect(await response.json()).toMatchObject({ error: { type: 'invalid_model', code: 404 } });
});

test('what a provider costs us, where it is and with which key, is not in it', async () => {
  for (const path of ['/models', '/models/test/model/endpoints', '/providers']) {
    const text = await (await get(path)).text();
    expect(text).not.toContain('upstream-secret-canary');
    expect(text).not.toContain('127.0.0.1');
    expect(text).not.toContain('upstream-model');
  }
});

test('providers are public, with their id as the direct form takes it', async () => {
  const { data } = (await (await get('/providers')).json()) as {
    data: { id: string; name: string; services: number }[];
  };
  expect(data.map(({ name, services }) => [name, services])).toEqual([
    ['Deep', 1],
    ['Plain', 1],
    ['Second', 1],
    ['Test', 1],
  ]);
  const response = await spine.post('/chat/completions', {
    model: `${data[2]!.id}:test/model`,
    messages: [{ role: 'user', content: 'hello' }],
    max_tokens: 5,
  });
  expect(response.headers.get('x-provider')).toBe('Second');
  expect(await spine.faults()).toEqual([]);
});

test('a free model costs nothing and still has its record', async () => {
  const { key } = await spine.tenant('penniless', '0.000001');
  const response = await spine.post(
    '/chat/completions',
    { model: 'plain', messages: [{ role: 'user', content: 'hello' }] },
    { authorization: `Bearer ${key}` },
  );
  expect(response.status).toBe(200);
  expect(response.headers.get('x-cost-usd')).toBe('0');
  expect(await spine.generation(response.headers.get('x-generation-id'), key)).toMatchObject({
    state: 'settled',
    cost_micro_usdc: 0,
  });
});

test('a context that nobody declared is null, and locks use a default', async () => {
  const { upstream, proxy } = await dialled('far/undeclared');
  const listing = await list();
  const name = 'far/undeclared';
  expect(listing.data.find(({ id }) => id === name)).toMatchObject({
    context_length: null,
    top_provider: { context_length: null },
  });
  const service = await (await get(`/services/model/${name}`)).json();
  expect(service).toMatchObject({ data: { context_length: null } });
  const { data } = (await (await get(`/models/${name}/endpoints`)).json()) as {
    data: { endpoints: { context_length: number }[] };
  };
  // Some clients refuse a null here.
  expect(data.endpoints[0]!.context_length).toBe(131_072);
  const answer = await spine.post('/chat/completions', { ...ask('hello'), model: name, max_tokens: undefined });
  expect(answer.status).toBe(200);
  proxy.kill();
  await upstream.stop();
});

async function dialled(name: string) {
  const upstream = await startProvider();
  const services = offeredModel({ url: upstream.url, name, provider: 'Far' })
    .replace(/^context_length.*\n/m, '')
    .replace(/^max_output_tokens.*\n/m, '');
  return { upstream, proxy: await dialIn({ router: spine.origin, services }) };
}
