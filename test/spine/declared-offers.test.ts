import { afterEach, describe, expect, test } from 'vitest';
import { startProvider } from '../support/provider.ts';
import { ask, modelBlock, UNHURRIED } from '../support/spine.ts';
import { ofFile, spineOfFile } from '../support/of-file.ts';

// Requests choose among offers by what these declare, and by whether they take all fields.

const OFFERS = [
  { provider: 'Plain', lines: '' },
  { provider: 'Denying', lines: 'data_collection = "deny"\nregion = "us-east-1"\nquantization = "fp8"' },
  { provider: 'Forgetting', lines: 'zdr = true\nregion = "eu"\nquantization = "bf16"' },
] as const;
const ALL = ['Denying', 'Forgetting', 'Plain'];

const upstream = ofFile(startProvider, (one) => one.stop());
const spine = spineOfFile(() => {
  const { url } = upstream;
  return {
    toml:
      UNHURRIED +
      OFFERS.map((block) => modelBlock({ ...block, name: 'test/declared', url })).join('') +
      modelBlock({ name: 'test/fields', provider: 'Lists', url, params: 'forward = ["top_n_sigma"]' }) +
      modelBlock({ name: 'test/fields', provider: 'Lacks', url, params: 'forward = []' }) +
      modelBlock({ name: 'test/one', provider: 'Lacks', url, params: 'forward = []' }),
  };
});
afterEach(async () => {
  expect(await spine.faults()).toEqual([]);
});

interface Refused {
  readonly error: { readonly type: string; readonly param: string; readonly message: string };
}

const post = (more: object, model = 'test/declared') =>
  spine.post('/chat/completions', ask('hello', { model, ...more }));

/** The most calls until each of a few equal offers has served one. */
const CALLS_MAX = 60;
/** Calls in which another offer would show itself. */
const CALLS_MIN = 8;

/** The providers that serve such requests, at least `count` of them. */
async function serving(more: object, count: number, model?: string): Promise<string[]> {
  const names = new Set<string>();
  for (let call = 0; call < CALLS_MIN || (names.size < count && call < CALLS_MAX); call++) {
    const response = await post(more, model);
    expect(response.status, await response.text()).toBe(200);
    names.add(response.headers.get('x-provider')!);
  }
  return [...names].toSorted();
}

describe('a preference for what offers declare', () => {
  test.each([
    [{ data_collection: 'allow', zdr: false, quantizations: [], require_parameters: true }, ALL],
    [{ data_collection: null, zdr: null, quantizations: null, region: null, require_parameters: null }, ALL],
    [{ data_collection: 'deny' }, ['Denying', 'Forgetting']],
    [{ zdr: true }, ['Forgetting']],
    [{ quantizations: ['fp8'] }, ['Denying']],
    [{ quantizations: ['fp8', 'bf16'] }, ['Denying', 'Forgetting']],
    [{ quantizations: ['unknown'] }, ['Plain']],
    [{ region: 'eu' }, ['Forgetting']],
    [{ region: ['eu', 'us-east-1'] }, ['Denying', 'Forgetting']],
    [{ region: [] }, ALL],
    [{ data_collection: 'deny', region: 'us-east-1', quantizations: ['fp8'] }, ['Denying']],
    [{ data_collection: 'deny', order: ['Plain', 'Forgetting'] }, ['Forgetting']],
  ])('%j is served by %j', async (provider, names) => {
    expect(await serving({ provider }, names.length)).toEqual(names);
  });

  test.each([
    [
      { region: 'mars' },
      'provider.region',
      'Denying: data_collection = "deny", quantization = "fp8", region = "us-east-1"',
    ],
    [{ quantizations: ['int4'] }, 'provider.quantizations', 'Plain: nothing'],
    [{ zdr: true, region: 'us-east-1' }, 'provider', 'provider.zdr and provider.region'],
    [{ zdr: true, only: ['Plain'] }, 'provider', 'Those that declare what is asked for are Forgetting'],
  ])('%j is met by nobody: 404 that says what they declare', async (provider, param, message) => {
    const response = await post({ provider });
    expect(response.status).toBe(404);
    const { error } = (await response.json()) as Refused;
    expect(error).toMatchObject({ type: 'not_found', param });
    expect(error.message).toContain(message);
  });

  test('holds for a model with one offer, and for fallbacks', async () => {
    const one = await post({ provider: { zdr: true } }, 'test/one');
    expect(one.status).toBe(404);
    expect(((await one.json()) as Refused).error.message).toContain('Lacks: nothing');
    const fallback = await post({ models: ['test/one', 'test/declared'], provider: { zdr: true } }, 'test/one');
    expect(fallback.headers.get('x-provider')).toBe('Forgetting');
  });

  test.each([
    ['/messages', { max_tokens: 5, messages: [{ role: 'user', content: 'hello' }] }],
    ['/responses', { input: 'hello' }],
    ['/completions', { prompt: 'hello' }],
  ])('is the same at %s', async (path, body) => {
    const serve = (provider: object) => spine.post(path, { model: 'test/declared', ...body, provider });
    for (let round = 0; round < 6; round++) {
      const served = await serve({ region: 'eu' });
      expect(served.status, await served.text()).toBe(200);
      expect(served.headers.get('x-provider')).toBe('Forgetting');
    }
    const refused = await serve({ region: 'mars' });
    expect(refused.status).toBe(404);
    expect(await refused.text()).toContain('provider.region');
  });
});

describe('require_parameters', () => {
  const FIELD = { top_n_sigma: 1 };

  test('chooses the offers that get all fields', async () => {
    expect(await serving(FIELD, 2, 'test/fields')).toEqual(['Lacks', 'Lists']);
    expect(await serving({ ...FIELD, provider: { require_parameters: true } }, 1, 'test/fields')).toEqual(['Lists']);
    const published = { temperature: 1, provider: { require_parameters: true } };
    expect(await serving(published, 2, 'test/fields')).toEqual(['Lacks', 'Lists']);
  });

  test('fields for the gateway and for another router are not asked for', async () => {
    const more = { usage: { include: true }, route: 'fallback', metadata: { a: 'b' }, session_id: 'one' };
    expect(await serving({ ...more, provider: { require_parameters: true } }, 1, 'test/one')).toEqual(['Lacks']);
  });

  test('that nobody gets: 404 that names them', async () => {
    const response = await post({ ...FIELD, provider: { require_parameters: true } }, 'test/one');
    expect(response.status).toBe(404);
    const { error } = (await response.json()) as Refused;
    expect(error).toMatchObject({ type: 'not_found', param: 'provider.require_parameters' });
    expect(error.message).toContain('Lacks does not get top_n_sigma');
  });

  test('counts what the translation of another API loses', async () => {
    const asked = { model: 'test/one', prompt: 'hello', max_tokens: 5, unheard_of: 1 };
    const served = await spine.post('/completions', asked);
    expect(served.status, await served.text()).toBe(200);
    expect(served.headers.get('x-tollgate-dropped')).toContain('unheard_of');
    const refused = await spine.post('/completions', { ...asked, provider: { require_parameters: true } });
    expect(refused.status).toBe(404);
    expect(await refused.text()).toContain('unheard_of');
  });
});

test('what offers declare is listed', async () => {
  const { data } = (await (await spine.get('/models/test/declared/endpoints')).json()) as {
    data: { endpoints: readonly { readonly provider_name: string }[] };
  };
  const listed = data.endpoints.toSorted((a, b) => (a.provider_name < b.provider_name ? -1 : 1));
  expect(listed).toMatchObject([
    { data_collection: 'deny', zdr: false, quantization: 'fp8', region: 'us-east-1' },
    { data_collection: 'allow', zdr: true, quantization: 'bf16', region: 'eu' },
    { data_collection: 'allow', zdr: false, quantization: null, region: null },
  ]);
});
