import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { startProvider, type TestProvider } from '../support/provider.ts';
import { ask, modelBlock, startSpine, UNHURRIED, type Spine } from '../support/spine.ts';

// The consumer's say in who serves: the `provider` object, the suffixes, and the direct form of a name.

const cheap = { provider: 'Cheap', prompt: 1, completion: 1 };
const middle = { provider: 'Middle', prompt: 2, completion: 20 };
const dear = { provider: 'Dear One', prompt: 30, completion: 30 };
const providers: TestProvider[] = [];
let spine: Spine;

beforeAll(async () => {
  for (const _ of [cheap, middle, dear]) providers.push(await startProvider());
  spine = await startSpine({
    toml:
      UNHURRIED +
      [cheap, middle, dear]
        .map((block, index) => modelBlock({ ...block, name: 'test/three', url: providers[index]!.url }))
        .join('') +
      modelBlock({ name: 'test/speed', provider: 'Slow', url: providers[0]!.url }) +
      modelBlock({ name: 'test/speed', provider: 'Quick', url: providers[1]!.url, prompt: 100, completion: 100 }),
  });
});
afterAll(async () => {
  await spine.stop();
  for (const provider of providers) await provider.stop();
});
afterEach(async () => {
  expect(await spine.faults()).toEqual([]);
});

const served = async (more: object, model = 'test/three') => {
  const response = await spine.post('/chat/completions', ask('hello', { model, ...more }));
  const text = await response.text();
  return response.status === 200
    ? response.headers.get('x-provider')!
    : `${response.status} ${(JSON.parse(text) as { error: { type: string; param: string } }).error.type}`;
};
const often = async (more: object, model?: string) => {
  const names = new Set<string>();
  for (let i = 0; i < 5; i++) names.add(await served(more, model));
  return [...names].sort();
};
const idOf = (name: string) => spine.app.catalog.offers().find((offer) => offer.provider.name === name)!.provider.id;

describe('provider', () => {
  test('order: the first of it that is there', async () => {
    expect(await often({ provider: { order: ['Dear One', 'Cheap'] } })).toEqual(['Dear One']);
    expect(await often({ provider: { order: ['Nobody', 'Middle'] } })).toEqual(['Middle']);
  });
  test('names in any case, and ids', async () => {
    expect(await often({ provider: { order: ['dear one'] } })).toEqual(['Dear One']);
    expect(await often({ provider: { order: [idOf('Middle')] } })).toEqual(['Middle']);
  });
  test('only', async () => {
    expect(await often({ provider: { only: ['Middle'] } })).toEqual(['Middle']);
    expect(await often({ provider: { only: ['Dear One', idOf('Middle')], order: ['Dear One'] } })).toEqual([
      'Dear One',
    ]);
  });
  test('ignore', async () => {
    expect(await often({ provider: { ignore: ['Cheap', 'Middle'] } })).toEqual(['Dear One']);
  });
  test('ignore is stronger than order and only', async () => {
    expect(await often({ provider: { order: ['Cheap'], only: ['Cheap', 'Middle'], ignore: ['Cheap'] } })).toEqual([
      'Middle',
    ]);
  });
  test('allow_fallbacks: false keeps to the order', async () => {
    expect(await often({ provider: { order: ['Dear One'], allow_fallbacks: false } })).toEqual(['Dear One']);
    expect(await served({ provider: { order: ['Nobody'], allow_fallbacks: false } })).toBe('404 not_found');
  });
  test('sort: price', async () => {
    expect(await often({ provider: { sort: 'price' } })).toEqual(['Cheap']);
  });
  test('max_price, in USD per 1M tokens, as number or text', async () => {
    expect(await often({ provider: { max_price: { completion: 25 }, ignore: ['Cheap'] } })).toEqual(['Middle']);
    expect(await often({ provider: { max_price: { prompt: '1', completion: '1' } } })).toEqual(['Cheap']);
    expect(await served({ provider: { max_price: { prompt: 0.999999 } } })).toBe('404 not_found');
  });
  test('nobody is left: 404 that names the preferences', async () => {
    const response = await spine.post(
      '/chat/completions',
      ask('hello', { model: 'test/three', provider: { only: ['Nobody'] } }),
    );
    expect(response.status).toBe(404);
    expect(await response.json()).toMatchObject({ error: { type: 'not_found', param: 'provider' } });
  });
  test.each([
    [{ order: 'Cheap' }, 'provider.order'],
    [{ only: [1] }, 'provider.only[0]'],
    [{ allow_fallbacks: 'yes' }, 'provider.allow_fallbacks'],
    [{ sort: 'luck' }, 'provider.sort'],
    [{ max_price: { prompt: -1 } }, 'provider.max_price.prompt'],
    [{ max_price: { completion: 'cheap' } }, 'provider.max_price.completion'],
    [{ max_price: { coffee: 1 } }, 'provider.max_price.coffee'],
    ['Cheap', 'provider'],
  ])('%j is refused, naming the field', async (provider, param) => {
    const response = await spine.post('/chat/completions', ask('hello', { provider }));
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ error: { type: 'invalid_request', param } });
  });
  test('null counts as absent', async () => {
    expect(await served({ provider: null, models: null, session_id: null })).not.toMatch(/^\d/);
    expect(
      await served({
        provider: { order: null, only: null, ignore: null, allow_fallbacks: null, sort: null, max_price: null },
      }),
    ).not.toMatch(/^\d/);
  });
});

test('without a say, cheaper is likelier: one over the price squared', async () => {
  const counts = new Map<string, number>();
  for (let i = 0; i < 150; i++) {
    const name = await served({});
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  // 1/2² against 1/22² and 1/60²: 99 of 100 go to the cheapest.
  expect(counts.get('Cheap')).toBeGreaterThan(130);
});

test(':floor is the cheapest', async () => {
  expect(await often({}, 'test/three:floor')).toEqual(['Cheap']);
});

test('what was measured decides :nitro, and sort by throughput and latency', async () => {
  // Not streamed, so that the delay is in both; the slow one is the cheaper by far.
  for (let i = 0; i < 3; i++) {
    await served(
      { provider: { only: ['Slow'] }, messages: [{ role: 'user', content: '!head-delay:400' }] },
      'test/speed',
    );
    await served(
      { provider: { only: ['Quick'] }, messages: [{ role: 'user', content: '!tokens:2000' }], max_tokens: 2000 },
      'test/speed',
    );
  }
  expect(await often({}, 'test/speed:nitro')).toEqual(['Quick']);
  expect(await often({ provider: { sort: 'throughput' } }, 'test/speed')).toEqual(['Quick']);
  expect(await often({ provider: { sort: 'latency' } }, 'test/speed')).toEqual(['Quick']);
  expect(await often({}, 'test/speed:floor')).toEqual(['Slow']);
});

test('<provider_pubkey>:<model> is that provider and no other', async () => {
  expect(await often({}, `${idOf('Dear One')}:test/three`)).toEqual(['Dear One']);
  providers[2]!.log.length = 0;
  const response = await spine.post(
    '/chat/completions',
    ask('hello !status:400', { model: `${idOf('Dear One')}:test/three` }),
  );
  expect(response.status).toBe(400);
  const unknown = await spine.post('/chat/completions', ask('hello', { model: `${idOf('Test')}:test/three` }));
  expect(unknown.status).toBe(404);
  expect(await unknown.json()).toMatchObject({
    error: { type: 'invalid_model', code: 404, param: 'model', message: `Model not found: ${idOf('Test')}:test/three` },
  });
});

test('the reply names the model by the name of the service, without suffix and key', async () => {
  for (const model of ['test/three:floor', `${idOf('Cheap')}:test/three`]) {
    const response = await spine.post('/chat/completions', ask('hello', { model }));
    expect(await response.json()).toMatchObject({ model: 'test/three' });
  }
});
