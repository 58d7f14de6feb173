import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  isPriced,
  cost,
  METERS,
  MoneyError,
  parseRates,
  priceId,
  ratesFromJson,
  ratesToJson,
  usageToText,
  type Meter,
  type Rates,
  type Usage,
} from '#billing/amounts';
import { jumpsBetween } from '#billing';
import { usageFromText } from '../../src/billing/prices/price-text.ts';

const some = <T>(value: fc.Arbitrary<T>) =>
  fc.record(Object.fromEntries(METERS.map((meter) => [meter, value])) as Record<Meter, fc.Arbitrary<T>>, {
    requiredKeys: [],
  });
const rates: fc.Arbitrary<Rates> = some(fc.oneof(fc.constant(0n), fc.bigInt({ min: 0n, max: 10n ** 15n })));
const usage: fc.Arbitrary<Usage> = some(fc.oneof(fc.constant(0n), fc.bigInt({ min: 0n, max: 10n ** 9n })));

describe('the cost of a call', () => {
  test.each([
    [{ prompt: 150_000n, completion: 600_000n }, { prompt: 1_000n, completion: 1_000n }, 750n],
    [{ prompt: 1n }, { prompt: 1n }, 1n],
    [{ prompt: 1n }, { prompt: 1_000_000n }, 1n],
    [{ prompt: 1n }, { prompt: 1_000_001n }, 2n],
    [{ prompt: 400_000n, completion: 600_000n }, { prompt: 1n, completion: 1n }, 1n],
    [{ prompt: 400_000n, completion: 600_001n }, { prompt: 1n, completion: 1n }, 2n],
    [{ call: 5_000_000n }, { call: 3n, prompt: 99n }, 15n],
    // Tokens of a cache cost what the prompt does, unless they have a price.
    [{ prompt: 1_000_000n }, { prompt: 1n, input_cache_read: 3n, input_cache_write: 5n }, 9n],
    [{ prompt: 1_000_000n, input_cache_read: 0n }, { prompt: 1n, input_cache_read: 3n, input_cache_write: 5n }, 6n],
    [{}, { prompt: 5n }, 0n],
    [{ prompt: 5n }, {}, 0n],
  ])('at %o for %o is %s', (at, used, expected) => {
    expect(cost(at, used)).toBe(expected);
  });

  test('is the exact sum, rounded up once, and never 0 for something that has a price', () => {
    fc.assert(
      fc.property(rates, usage, (at, used) => {
        const written = at.input_cache_write ?? at.prompt;
        const whole = {
          ...at,
          input_cache_read: at.input_cache_read ?? at.prompt,
          input_cache_write: written,
          input_cache_write_1h: at.input_cache_write_1h ?? written,
          audio: at.audio ?? at.prompt,
          input_audio_cache: at.input_audio_cache ?? at.audio ?? at.prompt,
          internal_reasoning: at.internal_reasoning ?? at.completion,
          audio_output: at.audio_output ?? at.completion,
          image_output: at.image_output ?? at.completion,
        };
        const exact = METERS.reduce((sum, meter) => sum + (whole[meter] ?? 0n) * (used[meter] ?? 0n), 0n);
        const charged = cost(at, used) * 1_000_000n;
        expect(charged).toBeGreaterThanOrEqual(exact);
        expect(charged - exact).toBeLessThan(1_000_000n);
        expect(cost(at, used) === 0n).toBe(exact === 0n);
      }),
    );
  });
});

describe('rates', () => {
  test('are written per 1M tokens, and per unit of everything else', () => {
    expect(parseRates({ prompt: 0.15, completion: '0.60', image: '0.001', second: 1, call: '0.000001' })).toEqual({
      prompt: 150_000n,
      completion: 600_000n,
      image: 1_000n * 1_000_000n,
      second: 1_000_000n * 1_000_000n,
      call: 1_000_000n,
    });
    expect(parseRates({ prompt: null, completion: undefined })).toEqual({});
  });

  test('that nobody knows or that are no money are refused by name', () => {
    expect(() => parseRates({ promt: 1 })).toThrow(/pricing\.promt is not a price/);
    expect(() => parseRates({ completion: -1 })).toThrow(MoneyError);
    expect(() => parseRates({ completion: -1 })).toThrow(/pricing\.completion/);
  });

  test('say whether anything has a price', () => {
    expect([{}, { prompt: 0n }, { prompt: 0n, call: 1n }].map(isPriced)).toEqual([false, false, true]);
  });

  test('and usage survive being stored', () => {
    fc.assert(
      fc.property(rates, usage, (at, used) => {
        expect(ratesFromJson(JSON.parse(JSON.stringify(ratesToJson(at))) as Record<string, string>)).toEqual(at);
        expect(usageFromText(usageToText(used))).toEqual(used);
      }),
    );
  });
});

test('a price version is named by all that it says', () => {
  const ids = [
    priceId('p', 's', { prompt: 1n }),
    priceId('q', 's', { prompt: 1n }),
    priceId('p', 't', { prompt: 1n }),
    priceId('p', 's', { prompt: 2n }),
    priceId('p', 's', { completion: 1n }),
    priceId('p', 's', { prompt: 1n, input_image: 1n }),
    priceId('p', 's', { prompt: 1n, input_cache_read: 1n }),
    priceId('p', 's', { prompt: 1n, input_cache_write: 1n }),
    priceId('p', 's', { prompt: 1n, input_cache_write_1h: 1n }),
    priceId('p', 's', { prompt: 1n, internal_reasoning: 0n }),
    priceId('p', 's', { prompt: 1n, web_search: 1n }),
    priceId('p', 's', { prompt: 1n, tiers: [{ above: 200_000n, rates: { prompt: 1n } }] }),
    priceId('p', 's', { prompt: 1n, tiers: [{ above: 200_001n, rates: { prompt: 1n } }] }),
    priceId('p', 's', { prompt: 1n, tiers: [{ above: 200_000n, rates: { prompt: 2n } }] }),
    // A cache that is free, and one that costs what the prompt does.
    priceId('p', 's', { prompt: 1n, input_cache_read: 0n }),
  ];
  expect(new Set(ids).size).toBe(ids.length);
  expect(priceId('p', 's', { completion: 0n, prompt: 1n })).toBe(ids[0]);
  // Ids of before there was a price for images that are edited.
  expect(ids[0]).toBe('price-0daa7d9a934a936cf3516e277fbe581c');
  expect(priceId('p', 's', { prompt: 1n, input_image: 0n })).toBe(ids[0]);
  expect(priceId('p', 's', { prompt: 1n, web_search: 0n })).toBe(ids[0]);
  // An id of before there were tiers, and parts of a completion with their own prices.
  expect(priceId('p', 's', { prompt: 3_000_000n, completion: 15_000_000n, input_cache_read: 300_000n })).toBe(
    'price-2ce00cb7016d0b8400ff444d9f0ff1f4',
  );
});

test.each<[string, Rates, Rates, readonly Meter[]]>([
  ['a cache that gets a lower price', { prompt: 10n, input_cache_read: 1n }, { prompt: 10n }, []],
  [
    'a cache that costs what the prompt does again',
    { prompt: 10n },
    { prompt: 10n, input_cache_read: 1n },
    ['input_cache_read'],
  ],
  ['a prompt, and with it its caches', { prompt: 30n }, { prompt: 10n }, ['prompt']],
  ['a cache that gets a high price', { prompt: 10n, input_cache_write: 21n }, { prompt: 10n }, ['input_cache_write']],
])('%s jumps by what a token of it cost before', (_name, rates, was, jumped) => {
  expect(jumpsBetween(rates, was).map(({ meter }) => meter)).toEqual(jumped);
});
