import type { Meter } from '#billing';
import { type Case, timeout } from './block-case.ts';

/** The price of a part of a model's tokens. */
const part = (meter: Meter): Case => ({
  toml: '"2.5"',
  wrong: ['-1', '10_001', '0.0000002', '"much"'],
  of: ({ service }) => service.rates[meter],
  is: 2_500_000n,
  fallback: undefined,
});

/** The price of a search. */
const search = (meter: Meter): Case => ({
  toml: '0.01',
  wrong: ['-1', '101', '0.0000002', '"much"'],
  of: ({ service }) => service.rates[meter],
  is: 10_000_000_000n,
  fallback: undefined,
});

/** Prices of a model besides those of its prompt, its completion and its caches. */
export const PRICE_CASES: Readonly<Record<string, Case>> = {
  'pricing.input_cache_write_1h': part('input_cache_write_1h'),
  'pricing.audio': part('audio'),
  'pricing.input_audio_cache': { ...part('input_audio_cache'), with: { 'pricing.audio': '3' } },
  'pricing.internal_reasoning': part('internal_reasoning'),
  'pricing.audio_output': part('audio_output'),
  'pricing.image_output': part('image_output'),
  'pricing.web_search': search('web_search'),
  'pricing.character': { ...part('character'), with: { output_modalities: '["speech"]' } },
  'pricing.per_minute': {
    toml: '"0.0043"',
    wrong: ['-1', '1_001', '0.0000001', '"much"'],
    of: ({ service }) => service.rates.second,
    // A sixtieth, in micro-USD for a million seconds.
    is: 71_666_666n,
    fallback: undefined,
    with: { output_modalities: '["transcription"]' },
  },
  'pricing.per_call': search('call'),
  'pricing.tiers': {
    toml: '[{ above = 200_000, prompt = 4, web_search = 0.1 }, { above = 300_000, completion = "5" }]',
    wrong: [
      '3',
      '[3]',
      '[{ prompt = 4 }]',
      '[{ above = 9 }]',
      '[{ above = 0, prompt = 4 }]',
      '[{ above = 1.5, prompt = 4 }]',
      '[{ above = "9", prompt = 4 }]',
      '[{ above = 100_000_001, prompt = 4 }]',
      '[{ above = 9, prompt = -4 }]',
      '[{ above = 9, promt = 4 }]',
      '[{ above = 9, second = 4 }]',
      '[{ above = 9, prompt = 4 }, { above = 9, prompt = 5 }]',
      '[{ above = 9, prompt = 4 }, { above = 8, prompt = 5 }]',
      `[${Array.from({ length: 9 }, (_, n) => `{ above = ${n + 1}, prompt = 4 }`).join(',')}]`,
    ],
    of: ({ service }) => service.rates.tiers,
    is: [
      { above: 200_000n, rates: { prompt: 4_000_000n, completion: 2_000_000n, web_search: 100_000_000_000n } },
      { above: 300_000n, rates: { prompt: 4_000_000n, completion: 5_000_000n, web_search: 100_000_000_000n } },
    ],
    fallback: undefined,
    with: { 'pricing.prompt': '1', 'pricing.completion': '2' },
  },
  'pricing.service_tiers': {
    toml: '{ flex = { prompt = "0.5", tiers = [{ above = 9, completion = 3 }] }, priority = {} }',
    wrong: [
      '3',
      '[]',
      '{ flex = 3 }',
      '{ Flex = { prompt = 1 } }',
      '{ default = { prompt = 1 } }',
      '{ auto = { prompt = 1 } }',
      '{ standard = { prompt = 1 } }',
      '{ __proto__ = { prompt = 1 } }',
      '{ flex = { promt = 1 } }',
      '{ flex = { above = 1 } }',
      '{ flex = { tiers = 3 } }',
      '{ flex = { tiers = [{ prompt = 3 }] } }',
      `{ ${Array.from({ length: 9 }, (_, n) => `t${n} = { prompt = 4 }`).join(',')} }`,
    ],
    of: ({ service }) => service.variants,
    is: {
      flex: {
        prompt: 500_000n,
        completion: 2_000_000n,
        tiers: [{ above: 9n, rates: { prompt: 500_000n, completion: 3_000_000n } }],
      },
      priority: { prompt: 1_000_000n, completion: 2_000_000n },
    },
    fallback: {},
    with: { 'pricing.prompt': '1', 'pricing.completion': '2' },
  },
  'params.own_keys': {
    toml: 'true',
    wrong: ['1', '"yes"'],
    of: ({ target }) => target.kind === 'http' && target.ownKeys,
    is: true,
    fallback: undefined,
  },
  'params.head_timeout_ms': timeout('headMs'),
  'params.first_event_timeout_ms': timeout('firstEventMs'),
  'params.batches': {
    toml: 'true',
    wrong: ['1', '"yes"'],
    of: ({ target }) => target.kind === 'http' && target.batches,
    is: true,
    fallback: undefined,
    with: { 'pricing.prompt': '1', 'pricing.completion': '2', 'pricing.service_tiers': '{ batch = { prompt = 0.5 } }' },
  },
  'params.searches_max': {
    toml: '3',
    wrong: ['0', '-1', '1.5', '1001', '"1"'],
    of: ({ service }) => service.primitive === 'model' && service.model.searchesMax,
    is: 3,
    fallback: undefined,
  },
};
