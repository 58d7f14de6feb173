import { afterEach, describe, expect, it } from 'vitest';
import { createCatalog, type Offer } from '#catalog';
import { anonymousAt } from '#accounts';
import { createServer } from '#http';
import type { OfferStats } from '../../src/server/catalog/health/offer-figures.ts';
import { modelsRoutes } from '../../src/openai/models/models-routes.ts';
import { LIMITS } from './support/gateway.ts';
import { makeOffer } from './support/offers.ts';

const stats: OfferStats = {
  requests: 7,
  failures: 1,
  flags: { usage_missing: 2 },
  lastHour: { requests: 4, failures: 1, flags: 2 },
  uptime: 0.75,
  latencyMs: { p50: 10, p95: 20 },
  throughput: { p50: 90 },
  prompts: { prompt: 4_000, cached: 1_000, charged: 5_000 },
};

const offers: readonly Offer[] = [
  makeOffer({
    provider: 'dear',
    pricing: { prompt: 3, completion: '15', image: 0.001 },
    model: { contextLength: 200_000, inputModalities: ['text', 'image'] },
    createdAt: 1_800_000_009_000,
  }),
  makeOffer({ provider: 'cheap', pricing: { prompt: '0.15', completion: 0.6 }, createdAt: 1_800_000_005_999 }),
  makeOffer({ service: 'plain', pricing: {} }),
  { ...makeOffer({ service: 'acme/agent' }), primitive: 'agent', model: null },
  { ...makeOffer({ service: 'acme/tool', pricing: { call: 0.01 } }), primitive: 'tool', model: null },
  { ...makeOffer({ service: 'acme/painter', pricing: { image: 0.04 } }), primitive: 'image', model: null },
];

const catalog = createCatalog();
catalog.replace('test', offers);
const admit = async () => Promise.reject(new Error('the pages of this test are public'));
const visitor = (_headers: object, address: string) => anonymousAt(address);
const server = createServer({ limits: LIMITS, onError: () => {} });
const health = {
  failing: () => false,
  available: (offer: Offer) => offer.provider.name !== 'dear',
  stats: () => stats,
  compliance: () => 0.5,
};
const connected = new Set<string>();
const registry = {
  locate: (provider: string) => (connected.has(provider) ? ({ kind: 'here', connection: 'x' } as const) : null),
};
const ready = server.register(modelsRoutes({ catalog, health, registry, admit, visitor }), { prefix: '/api/v1' });
afterEach(() => catalog.replace('test', offers));

const get = async (path: string, headers: Record<string, string> = {}) => {
  await ready;
  return server.inject({ url: `/api/v1${path}`, headers });
};

const LISTS = ['data', 'agents', 'image_models', 'video_models', 'tools'];

describe('with more models than one list has', () => {
  const stranger = (at: number): Offer => ({
    ...makeOffer({ service: `a/${String(at).padStart(5, '0')}`, provider: 'stranger' }),
    endpoint: { kind: 'tunnel', provider: 'stranger', basePath: '/' },
  });
  const LISTED = 2_000;

  it("has the operator's first, and the others on its next pages", async () => {
    const strangers = Array.from({ length: LISTED + 500 }, (_, at) => stranger(at));
    catalog.replace('test', [...strangers, ...offers]);
    const own = offers.filter(({ primitive }) => primitive === 'model').map(({ service }) => service);
    const expected = [...new Set(own)].sort();
    const page = (await get('/models')).json<{
      data: { id: string }[];
      total_count: number;
      links: { next: string };
    }>();
    expect(page.data.slice(0, expected.length).map(({ id }) => id)).toEqual(expected);
    expect(page.data).toHaveLength(LISTED);
    expect(page.total_count).toBe(LISTED + 500 + expected.length);
    const rest = await get(page.links.next.replace('/api/v1', ''));
    expect(rest.json()).toMatchObject({ links: { next: null } });
    expect(rest.json<typeof page>().data).toHaveLength(500 + expected.length);
  });

  it("has all of the operator's in one list", async () => {
    const many = Array.from({ length: LISTED + 500 }, (_, at) => makeOffer({ service: `own/${at}` }));
    catalog.replace('test', [...many, stranger(1)]);
    const page = (await get('/models')).json<{ data: { id: string }[] }>();
    expect(page.data).toHaveLength(LISTED + 500);
    expect(page.data.every(({ id }) => id.startsWith('own/'))).toBe(true);
  });
});

describe('the listing of models', () => {
  it('has `models`, which Codex cannot do without, for Codex alone', async () => {
    const usual = (await get('/models')).json<object>();
    expect(usual).not.toHaveProperty('models');
    expect((await get('/models?client_version=0.169.0')).json()).toEqual({ ...usual, models: [] });
    expect((await get('/models')).json()).toEqual(usual);
  });

  it('serves both shapes in one entry, without a credential', async () => {
    const response = await get('/models');
    expect(response.headers['content-type']).toBe('application/json; charset=utf-8');
    expect(response.json()).toEqual({
      object: 'list',
      data: [
        {
          id: 'acme/small',
          object: 'model',
          created: 1_800_000_005,
          canonical_slug: 'acme/small',
          owned_by: 'dear',
          name: 'acme/small',
          display_name: 'dear acme/small',
          description: '',
          providers: [
            { id: 'dear-key', name: 'dear', pricing: { prompt: 3, completion: 15, image: 0.001 } },
            { id: 'cheap-key', name: 'cheap', pricing: { prompt: 0.15, completion: 0.6, image: null } },
          ],
          context_length: 200_000,
          architecture: {
            modality: 'text+image->text',
            input_modalities: ['text', 'image'],
            output_modalities: ['text'],
          },
          pricing: { prompt: '0.00000015', completion: '0.0000006', image: '0' },
          supported_parameters: expect.arrayContaining(['max_tokens', 'temperature', 'tools']),
          top_provider: { context_length: 8192, max_completion_tokens: 1000, is_moderated: false },
          links: { details: '/api/v1/models/acme/small/endpoints' },
          default_parameters: null,
          per_request_limits: null,
          supported_voices: null,
        },
        expect.objectContaining({ id: 'plain', pricing: { prompt: '0', completion: '0', image: '0' } }),
      ],
      total_count: 2,
      links: { next: null },
      agents: [expect.objectContaining({ id: 'acme/agent', object: 'agent' })],
      image_models: [],
      video_models: [],
      tools: [expect.objectContaining({ id: 'acme/tool', object: 'tool' })],
    });
  });

  it('tells what a model takes beside what every model takes, and what it reasons unseen', async () => {
    const lists = makeOffer({
      provider: 'lists',
      model: { forward: ['top_n_sigma'], hiddenReasoning: { max: 900, usual: 300 } },
    });
    catalog.replace('test', [lists, makeOffer({ provider: 'takes-all', model: { forward: 'all' } })]);
    const [model] = (await get('/models')).json<{ data: { supported_parameters: string[] }[] }>().data;
    expect(model!.supported_parameters).toContain('top_n_sigma');
    const { endpoints } = (await get('/models/acme/small/endpoints')).json<{
      data: { endpoints: Record<string, unknown>[] };
    }>().data;
    expect(endpoints[0]).toMatchObject({
      hidden_reasoning_tokens: { max: 900, usual: 300 },
      supported_parameters: expect.arrayContaining(['top_n_sigma']),
    });
    expect(endpoints[1]).not.toHaveProperty('hidden_reasoning_tokens');
    expect(endpoints[1]!['supported_parameters']).not.toContain('top_n_sigma');
  });

  it.each([
    ['', ['data', 'agents', 'tools']],
    ['?type=chat', ['data']],
    ['?type=image', ['image_models']],
    ['?type=video', []],
    ['?type=all', ['data', 'image_models']],
    ['?filter=models', ['data']],
    ['?filter=agents', ['agents', 'tools']],
    ['?type=all&filter=models', ['data', 'image_models']],
    ['?type=all&filter=agents', ['agents', 'tools']],
  ])('fills with %s only %j', async (query, filled) => {
    const body = (await get(`/models${query}`)).json<Record<string, unknown[]>>();
    expect(LISTS.filter((key) => body[key]!.length > 0)).toEqual(filled);
  });

  it.each(['?type=music', '?filter=tools', '?type=', '?type=chat&type=all'])('refuses %s', async (query) => {
    const response = await get(`/models${query}`);
    expect(response.statusCode).toBe(400);
    expect(response.json()).toMatchObject({ error: { type: 'invalid_request', code: 400 } });
  });

  it('is given a page at a time to who asks for it', async () => {
    const page = async (query: string) =>
      (await get(`/models${query}`)).json<{
        data: { id: string }[];
        total_count: number;
        links: { next: string | null };
      }>();
    const first = await page('?type=chat&limit=1');
    expect([first.data.map(({ id }) => id), first.total_count, first.links.next]).toEqual([
      ['acme/small'],
      2,
      '/api/v1/models?type=chat&offset=1&limit=1',
    ]);
    const last = await page(first.links.next!.slice('/api/v1/models'.length));
    expect([last.data.map(({ id }) => id), last.links.next]).toEqual([['plain'], null]);
    expect((await page('?offset=9')).data).toEqual([]);
    for (const query of ['?limit=0', '?limit=x', '?offset=-1'])
      expect((await get(`/models${query}`)).statusCode).toBe(400);
  });

  it('is counted', async () => {
    for (const [query, count] of [
      ['', 2],
      ['?type=all', 2],
      ['?type=image', 0],
    ] as const)
      expect((await get(`/models/count${query}`)).json()).toEqual({ data: { count } });
  });

  it('is not sent again to who has it, and changes with the offers', async () => {
    const { etag } = (await get('/models')).headers;
    expect((await get('/models', { 'if-none-match': etag! })).statusCode).toBe(304);
    catalog.replace('test', offers.slice(1));
    const changed = await get('/models', { 'if-none-match': etag! });
    expect(changed.statusCode).toBe(200);
    expect(changed.json<{ data: { owned_by: string }[] }>().data[0]!.owned_by).toBe('cheap');
  });
});

describe('one model', () => {
  it('is the entry of the listing, by its name with or without an encoded slash', async () => {
    const [entry] = (await get('/models')).json<{ data: unknown[] }>().data;
    expect((await get('/models/acme/small')).json()).toEqual(entry);
    expect((await get('/models/acme%2Fsmall')).json()).toEqual(entry);
    expect((await get('/model/acme/small')).json()).toEqual({ data: entry });
  });

  it('shows who offers it, and how well', async () => {
    const { data } = (await get('/models/acme/small/endpoints')).json<{ data: { endpoints: unknown[] } }>();
    expect(data).toMatchObject({
      id: 'acme/small',
      name: 'dear acme/small',
      created: 1_800_000_005,
      architecture: { input_modalities: ['text', 'image'] },
    });
    expect(data.endpoints).toMatchObject([
      {
        provider_name: 'dear',
        provider_id: 'dear-key',
        context_length: 200_000,
        max_completion_tokens: 1000,
        pricing: { prompt: '0.000003', completion: '0.000015', image: '0.001' },
        status: -1,
        health: 'cooling_down',
        uptime_last_1h: 0.75,
        latency: { p50: 10, p95: 20 },
        throughput: { p50: 90 },
        cache_hit_rate: 0.25,
        effective_prompt_price: 1.25,
        requests: 7,
        flags: { usage_missing: 2 },
        compliance: 0.5,
      },
      { provider_name: 'cheap', status: 0, health: 'healthy', context_length: 8192 },
    ]);
    expect((await get('/models/plain/endpoints')).json()).toMatchObject({ data: { id: 'plain' } });
  });

  it('shows who offers it through a tunnel as away while that is down', async () => {
    const [, cheap] = offers;
    catalog.replace('test', [
      { ...cheap!, endpoint: { kind: 'tunnel', provider: 'cheap-key', basePath: '/model/acme%2Fsmall' } },
    ]);
    const status = async () =>
      (await get('/models/acme/small/endpoints'))
        .json<{ data: { endpoints: { status: number; health: string }[] } }>()
        .data.endpoints.map((one) => [one.status, one.health]);
    expect(await status()).toEqual([[-2, 'away']]);
    connected.add('cheap-key');
    expect(await status()).toEqual([[0, 'healthy']]);
  });

  it('is not sent again to who has it', async () => {
    for (const path of ['/models/acme/small', '/models/acme/small/endpoints']) {
      const { etag } = (await get(path)).headers;
      expect((await get(path, { 'if-none-match': etag! })).statusCode).toBe(304);
      expect((await get(path, { 'if-none-match': '"other"' })).statusCode).toBe(200);
    }
  });

  it.each([
    '/models/nope',
    '/models/nope/endpoints',
    '/models/acme/agent',
    '/models/__proto__',
    '/models/constructor/endpoints',
  ])('%s is not found', async (path) => {
    const response = await get(path);
    expect(response.statusCode).toBe(404);
    expect(response.json()).toMatchObject({
      error: { type: 'invalid_model', code: 404, message: expect.stringMatching(/^Model not found: /) },
    });
  });
});
