import { readFileSync } from 'node:fs';
import { TieredPrices, type ModelInfo, type Provider } from '@pydantic/genai-prices';
import { describe, expect, it } from 'vitest';
import {
  dearer,
  listPrice,
  type ListPrice,
  PRICES_VERSION,
  rate,
  tierPrice,
} from '../../../src/providers/list-prices/list-prices.ts';

// Prices of entries that stand here, each computed by hand. Those of the installed list are in the last tests.

const NOON = Date.parse('2026-11-26T12:00:00Z');

type Prices = ModelInfo['prices'];
const entry = (prices: Prices, more: Partial<ModelInfo> = {}): Provider => ({
  id: 'acme',
  name: 'Acme',
  api_pattern: 'x',
  models: [{ id: 'm', match: { equals: 'm' }, prices, ...more }],
});
const priceOf = (prices: Prices, markupBps = 0, searches?: string): ListPrice =>
  listPrice(entry(prices), 'm', { now: NOON, markupBps, searches });
const pricingOf = (...args: Parameters<typeof priceOf>) => {
  const price = priceOf(...args);
  return price.kind === 'priced' ? price.pricing : price.why;
};

describe('a price of the list', () => {
  it('has the rates of the list as they are', () => {
    expect(
      pricingOf({
        input_mtok: 3,
        output_mtok: 15,
        cache_read_mtok: 0.3,
        cache_write_mtok: 3.75,
        cache_write_1h_mtok: 6,
        web_searches_kcount: 10,
      }),
    ).toEqual({
      prompt: '3',
      completion: '15',
      input_cache_read: '0.3',
      input_cache_write: '3.75',
      input_cache_write_1h: '6',
      // 10 USD for a thousand.
      web_search: '0.01',
    });
    expect(
      pricingOf({
        input_mtok: 2.5,
        output_mtok: 10,
        cache_read_mtok: 1.25,
        input_audio_mtok: 32,
        cache_audio_read_mtok: 0.4,
        output_audio_mtok: 64,
      }),
    ).toEqual({
      prompt: '2.5',
      completion: '10',
      input_cache_read: '1.25',
      audio: '32',
      input_audio_cache: '0.4',
      audio_output: '64',
    });
    expect(pricingOf({ input_mtok: 2, output_mtok: 8, output_reasoning_mtok: 3 })).toEqual({
      prompt: '2',
      completion: '8',
      internal_reasoning: '3',
    });
    expect(pricingOf({ input_mtok: 0.3, output_mtok: 2.5, output_image_mtok: 30 })).toEqual({
      prompt: '0.3',
      completion: '2.5',
      image_output: '30',
    });
  });

  it('has the markup on every rate, rounded up to a micro-USD', () => {
    expect(pricingOf({ input_mtok: 0.4, output_mtok: 1.6, cache_read_mtok: 0.1 }, 1_000)).toEqual({
      prompt: '0.44',
      completion: '1.76',
      input_cache_read: '0.11',
    });
    // 0.003625 + 2.5 % = 0.003715625, up to 0.003716.
    expect(pricingOf({ input_mtok: 0.003625, output_mtok: 1 }, 250)).toEqual({
      prompt: '0.003716',
      completion: '1.025',
    });
    // 10 USD for a thousand + 0.01 % = 0.010001 for one.
    expect(pricingOf({ input_mtok: 1, output_mtok: 1, web_searches_kcount: 10 }, 1)).toMatchObject({
      web_search: '0.010001',
    });
  });

  it('is never below that of the list, also for numbers that a double does not hold exactly', () => {
    // 0.1 + 10 % is 0.11 exactly, and not 0.11000000000000001.
    expect(rate(0.1, 'prompt', 1_000)).toBe(110_000n);
    expect(rate(1e-7, 'prompt', 0)).toBe(1_000n);
    expect(rate(1.23e21, 'web_search', 0)).toBe(1_230_000_000_000_000_000_000_000n);
    expect(rate(0, 'prompt', 1_000)).toBe(0n);
    expect(rate(0.0000015, 'web_search', 0)).toBe(1n);
    // A block may not have less than 0.001 USD.
    expect(rate(0.0002, 'input_cache_read', 0)).toBe(1_000n);
  });

  it('has tiers, each with all prices that it has above its threshold', () => {
    const tiered = (base: number, ...tiers: readonly (readonly [start: number, price: number])[]) =>
      new TieredPrices({ base, tiers: tiers.map(([start, price]) => ({ start, price })) });
    expect(
      pricingOf(
        {
          input_mtok: tiered(3, [200_000, 6]),
          output_mtok: tiered(15, [200_000, 22.5]),
          cache_read_mtok: tiered(0.3, [128_000, 0.4], [200_000, 0.6]),
          web_searches_kcount: 10,
        },
        1_000,
      ),
    ).toEqual({
      prompt: '3.3',
      completion: '16.5',
      input_cache_read: '0.33',
      web_search: '0.011',
      tiers: [
        { above: 128_000, prompt: '3.3', completion: '16.5', input_cache_read: '0.44' },
        { above: 200_000, prompt: '6.6', completion: '24.75', input_cache_read: '0.66' },
      ],
    });
  });

  it('is the dearest of the hours of a day', () => {
    const hours = (start_time: string, end_time: string) => ({ type: 'time_of_date' as const, start_time, end_time });
    expect(
      pricingOf([
        { prices: { input_mtok: 0.22, output_mtok: 0.66, cache_read_mtok: 0.007 } },
        { constraint: hours('01:00:00Z', '04:00:00Z'), prices: { input_mtok: 0.44, output_mtok: 0.5 } },
      ]),
      // At night a token of a cache costs as much as any other.
    ).toEqual({ prompt: '0.44', completion: '0.66', input_cache_read: '0.44' });
  });

  it('is that of today, and a dearer one a day before it begins', () => {
    const since = (start_date: string) => ({ type: 'start_date' as const, start_date });
    const dated = (begins: string, ...later: readonly [string, number][]) =>
      pricingOf([
        { prices: { input_mtok: 9, output_mtok: 9 } },
        { constraint: since(begins), prices: { input_mtok: 1, output_mtok: 2 } },
        ...later.map(([date, price]) => ({
          constraint: since(date),
          prices: { input_mtok: price, output_mtok: price },
        })),
      ]);
    expect(dated('2026-11-26')).toEqual({ prompt: '1', completion: '2' });
    expect(dated('2026-11-26', ['2026-11-27', 3])).toEqual({ prompt: '3', completion: '3' });
    // A cheaper one waits for its day.
    expect(dated('2026-11-26', ['2026-11-27', 0.5])).toEqual({ prompt: '1', completion: '2' });
    expect(dated('2026-11-26', ['2026-11-28', 3])).toEqual({ prompt: '1', completion: '2' });
    expect(dated('2026-11-28')).toEqual({ prompt: '9', completion: '9' });
  });

  it('has the price of searches of its provider if the list has none', () => {
    expect(pricingOf({ input_mtok: 1, output_mtok: 1 }, 1_000, '35')).toMatchObject({ web_search: '0.0385' });
    expect(pricingOf({ input_mtok: 1, output_mtok: 1, web_searches_kcount: 10 }, 0, '35')).toMatchObject({
      web_search: '0.01',
    });
  });

  it('of a model of embeddings has no completions', () => {
    const embedding = entry({ input_mtok: 0.02 }, { id: 'm-embed', match: { equals: 'm-embed' } });
    expect(listPrice(embedding, 'm-embed', { now: NOON, markupBps: 0 })).toMatchObject({
      kind: 'priced',
      makes: 'embeddings',
      pricing: { prompt: '0.02', completion: '0' },
    });
  });
});

describe('a model is not offered', () => {
  it.each<[string, Prices, string]>([
    ['it is charged by the request', { input_mtok: 1, output_mtok: 1, requests_kcount: 5 }, 'each request'],
    ['it is charged by the hour', { input_mtok: 1, output_mtok: 1, audio_hours: 0.3 }, 'time of sound'],
    [
      'a token of a picture costs more than one of text',
      { input_mtok: 1, output_mtok: 1, input_image_mtok: 1.1 },
      'pictures at another price',
    ],
    [
      'the list has a unit that is not known here',
      { input_mtok: 1, output_mtok: 1, input_text_messages_kcount: 5 },
      'input text messages',
    ],
    ['the list has no price for prompts', {}, 'no price for its tokens'],
    ['the list has no price for completions', { input_mtok: 1 }, 'no price for its completions'],
  ])('if %s', (_, prices, why) => {
    expect(pricingOf(prices)).toContain(why);
  });

  it('if its entry contradicts itself', () => {
    expect(pricingOf({ input_mtok: 1, output_mtok: 1, cache_audio_read_mtok: 1 })).toContain('does not have it');
  });

  it('but is, if what cannot be charged apart is not dearer, or cannot be used', () => {
    const offered = { prompt: '1', completion: '1' };
    expect(pricingOf({ input_mtok: 1, output_mtok: 1, input_image_mtok: 1 })).toEqual(offered);
    expect(pricingOf({ input_mtok: 1, output_mtok: 1, requests_kcount: 0 })).toEqual(offered);
    expect(pricingOf({ input_mtok: 1, output_mtok: 1, storage_searches_kcount: 2.5 })).toEqual(offered);
  });

  it('if one of the hours of its day has such a unit', () => {
    const constraint = { type: 'time_of_date' as const, start_time: '01:00:00Z', end_time: '04:00:00Z' };
    expect(
      pricingOf([
        { prices: { input_mtok: 1, output_mtok: 1 } },
        { constraint, prices: { input_mtok: 1, output_mtok: 1, requests_kcount: 5 } },
      ]),
    ).toContain('each request');
  });
});

describe("a provider's own prices", () => {
  it('count where they are higher', () => {
    const listed = { prompt: '1', completion: '2', tiers: [{ above: 100, prompt: '1.5', completion: '3' }] };
    expect(dearer(listed, { prompt: 1.2, completion: 1, input_cache_read: 0.5, audio: 1.4 }, 1_000)).toEqual({
      prompt: '1.32',
      completion: '2',
      audio: '1.54',
      tiers: [{ above: 100, prompt: '1.5', completion: '3', audio: '1.54' }],
    });
  });
});

describe('the installed list', () => {
  it('is the one whose date is written down', () => {
    const manifest = new URL('../../../node_modules/@pydantic/genai-prices/package.json', import.meta.url);
    expect((JSON.parse(readFileSync(manifest, 'utf8')) as { version: string }).version).toBe(PRICES_VERSION);
  });

  // Compare these with the pages of the providers when the package is updated.
  it.each<[string, string, string, object]>([
    [
      'openai',
      'gpt-4.1-mini',
      '10%',
      { prompt: '0.44', completion: '1.76', input_cache_read: '0.11', web_search: '0.011' },
    ],
    [
      'anthropic',
      'claude-haiku-4-5-20251001',
      '0%',
      { prompt: '1', completion: '5', input_cache_read: '0.1', input_cache_write: '1.25', input_cache_write_1h: '2' },
    ],
    [
      'google',
      'gemini-2.5-pro',
      '0%',
      { prompt: '1.25', tiers: [{ above: 200_000, prompt: '2.5', completion: '15', input_cache_read: '0.25' }] },
    ],
    ['deepseek', 'deepseek-v4-pro', '0%', { prompt: '1.32', completion: '3.96', input_cache_read: '0.044' }],
    ['mistral', 'mistral-large-2512', '0%', { prompt: '0.5', completion: '1.5' }],
    ['groq', 'llama-3.3-70b-versatile', '0%', { prompt: '0.59', completion: '0.79' }],
    [
      'x-ai',
      'grok-4.5',
      '0%',
      { prompt: '2', completion: '6', tiers: [{ above: 199_999, prompt: '4', completion: '12' }] },
    ],
    ['together', 'meta-llama/Llama-3.3-70B-Instruct-Turbo', '0%', { prompt: '0.88', completion: '0.88' }],
    ['azure', 'gpt-4.1-mini', '0%', { prompt: '0.4', completion: '1.6' }],
    ['aws', 'eu.anthropic.claude-haiku-4-5-20251001-v1:0', '0%', { prompt: '1.1', completion: '5.5' }],
    ['aws', 'global.anthropic.claude-haiku-4-5-20251001-v1:0', '0%', { prompt: '1', completion: '5' }],
    ['fireworks', 'accounts/fireworks/models/kimi-k3', '0%', { prompt: '3', completion: '15' }],
    ['cerebras', 'gpt-oss-120b', '0%', { prompt: '0.35', completion: '0.75' }],
    ['moonshotai', 'kimi-k3', '0%', { prompt: '3', completion: '15' }],
    ['zai', 'glm-5.3', '0%', { prompt: '1.4', completion: '4.4' }],
  ])('has the price of %s for %s + %s', (provider, model, markup, pricing) => {
    const price = listPrice(provider, model, { now: NOON, markupBps: Number.parseFloat(markup) * 100 });
    expect(price).toMatchObject({ kind: 'priced', pricing });
  });

  it.each([
    ['openai', 'gpt-99'],
    ['anthropic', 'claude-sonnet-5-fast'],
    ['anthropic', 'claude-sonnet-5-5'],
    ['google', 'gemini-2.5-pro-ultra'],
    ['perplexity', 'sonar-pro'],
  ])('gives %s no price for %s', (provider, model) => {
    expect(listPrice(provider, model, { now: NOON, markupBps: 0 })).toMatchObject({ kind: 'unpriced' });
  });
});

const HALF = { tier: 'batch', models: /./, times: [1n, 2n] } as const;

it('has the prices of a service tier as a part of those of tokens, rounded up, for prompts of each length', () => {
  const pricing = {
    prompt: '3.000001',
    completion: '3',
    input_cache_read: '0.1',
    web_search: '0.01',
    tiers: [{ above: 200_000, prompt: '4', completion: '6', input_cache_read: '0.4' }],
  };
  const all = { above: 200_000, prompt: '2', completion: '3' };
  expect(tierPrice(pricing, HALF)).toEqual({
    prompt: '1.500001',
    completion: '1.5',
    input_cache_read: '0.05',
    tiers: [{ ...all, input_cache_read: '0.2' }],
  });
  expect(tierPrice(pricing, { ...HALF, cachedAsPrompt: true })).toMatchObject({
    input_cache_read: '1.500001',
    tiers: [{ input_cache_read: '2' }],
  });
  // What is written to a cache is dearer than other tokens of a prompt, in each tier.
  expect(tierPrice({ ...pricing, input_cache_write: '3.75', input_cache_write_1h: '6' }, HALF)).toMatchObject({
    input_cache_write: '1.875',
    input_cache_write_1h: '3',
  });
  expect(tierPrice({ prompt: '1.1', completion: '4.4' }, { ...HALF, times: [20n, 11n] })).toEqual({
    prompt: '2',
    completion: '8',
  });
  // A block may have no lower rate.
  expect(tierPrice({ prompt: '0.001', completion: '0' }, HALF)).toEqual({ prompt: '0.001', completion: '0' });
  expect(tierPrice({ ...pricing, audio: '1' }, HALF)).toBeNull();
});
