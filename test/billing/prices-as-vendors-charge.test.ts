import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  ratesAt,
  settledPrice,
  completionTokens,
  cost,
  costAtMost,
  DEFAULT_TIER,
  METERS,
  parseRates,
  type Price,
  promptTokens,
  ratesFromJson,
  ratesToJson,
  type Rates,
  TOKEN_PARTS,
  type Usage,
} from '#billing/amounts';
import { jumpsBetween, leastRates, ratesAbove } from '#billing';

/** Rates in the vendor's words, USD per 1M tokens or per search. */
const rates = (
  first: Readonly<Record<string, number>>,
  ...long: readonly { readonly above: bigint; readonly to: Readonly<Record<string, number>> }[]
): Rates => {
  const base = parseRates(first);
  return {
    ...base,
    ...(long.length > 0
      ? { tiers: long.map(({ above, to }) => ({ above, rates: { ...base, ...parseRates(to) } })) }
      : {}),
  };
};

/* Public prices of the autumn of 2026. */
const GPT = rates(
  { prompt: 2, completion: 10, input_cache_read: 0.1, input_cache_write: 2.5, web_search: 0.01 },
  { above: 272_000n, to: { prompt: 4, completion: 15, input_cache_read: 0.2, input_cache_write: 5 } },
);
const GPT_AUDIO = rates({ prompt: 2.5, completion: 10, audio: 32, audio_output: 64 });
const REALTIME = rates({
  prompt: 4,
  completion: 16,
  input_cache_read: 0.4,
  audio: 32,
  input_audio_cache: 0.4,
  audio_output: 64,
});
const OPUS = rates({
  prompt: 5,
  completion: 25,
  input_cache_read: 0.5,
  input_cache_write: 6.25,
  input_cache_write_1h: 10,
  web_search: 0.01,
});
const SONNET = rates(
  { prompt: 3, completion: 15, input_cache_read: 0.3, input_cache_write: 3.75, input_cache_write_1h: 6 },
  {
    above: 200_000n,
    to: { prompt: 6, completion: 22.5, input_cache_read: 0.6, input_cache_write: 7.5, input_cache_write_1h: 12 },
  },
);
const GEMINI = rates(
  { prompt: 1.25, completion: 10, input_cache_read: 0.125, web_search: 0.014 },
  { above: 200_000n, to: { prompt: 2.5, completion: 15, input_cache_read: 0.25 } },
);
const GEMINI_FLASH = rates({ prompt: 0.3, completion: 2.5, audio: 1, input_cache_read: 0.03, input_audio_cache: 0.1 });
const GEMINI_IMAGE = rates({ prompt: 0.3, completion: 2.5, image_output: 30 });

describe('a call costs what the vendor charges', () => {
  test.each<[string, Rates, Usage, bigint]>([
    // 100,000 × 2 + 900,000 would be above 272K, so a prompt of 272,000 is the last at the first rates.
    ['OpenAI, a prompt of exactly 272K', GPT, { prompt: 272_000n, completion: 1_000n }, 544_000n + 10_000n],
    ['OpenAI, one token less', GPT, { prompt: 271_999n, completion: 1_000n }, 543_998n + 10_000n],
    ['OpenAI, one token more: the whole request', GPT, { prompt: 272_001n, completion: 1_000n }, 1_088_004n + 15_000n],
    [
      'OpenAI, above 272K with the cached tokens only',
      GPT,
      { prompt: 22_001n, input_cache_read: 250_000n, completion: 1_000n },
      88_004n + 50_000n + 15_000n,
    ],
    [
      'OpenAI, cache writes and reads',
      GPT,
      { prompt: 500n, input_cache_write: 2_000n, input_cache_read: 10_000n, completion: 300n },
      1_000n + 5_000n + 1_000n + 3_000n,
    ],
    // "Web search: $10.00 / 1k calls".
    ['OpenAI, searches', GPT, { prompt: 1_000n, completion: 0n, web_search: 3n }, 2_000n + 30_000n],
    // Reasoning is billed as output tokens, so without a price of its own it is a part of the completion.
    ['OpenAI, reasoning', GPT, { prompt: 0n, completion: 200n, internal_reasoning: 4_000n }, 42_000n],
    [
      'OpenAI, sound in and out',
      GPT_AUDIO,
      { prompt: 100n, audio: 600n, completion: 50n, audio_output: 1_200n },
      250n + 19_200n + 500n + 76_800n,
    ],
    [
      'OpenAI, cached sound',
      REALTIME,
      { prompt: 10n, input_cache_read: 100n, audio: 200n, input_audio_cache: 1_000n, audio_output: 10n },
      // 40 + 40 + 6,400 + 400 + 640
      7_520n,
    ],
    // The example of Anthropic's page on prompt caching: 2,048 uncached, 1,800 read, 248 written, 100 of them for an
    // hour.
    [
      'Anthropic, caches of 5 minutes and of an hour',
      OPUS,
      {
        prompt: 2_048n,
        input_cache_read: 1_800n,
        input_cache_write: 148n,
        input_cache_write_1h: 100n,
        completion: 503n,
      },
      // 10,240 + 900 + 925 + 1,000 + 12,575
      25_640n,
    ],
    // "$10 per 1,000 searches".
    ['Anthropic, searches', OPUS, { prompt: 105n, completion: 6_039n, web_search: 1n }, 525n + 150_975n + 10_000n],
    ['Anthropic, at 200K', SONNET, { prompt: 200_000n, completion: 100n }, 600_000n + 1_500n],
    ['Anthropic, above 200K', SONNET, { prompt: 200_001n, completion: 100n }, 1_200_006n + 2_250n],
    [
      'Anthropic, above 200K by writes and reads',
      SONNET,
      {
        prompt: 1n,
        input_cache_write: 50_000n,
        input_cache_write_1h: 50_000n,
        input_cache_read: 100_000n,
        completion: 0n,
      },
      6n + 375_000n + 600_000n + 60_000n,
    ],
    ['Google, at 200K', GEMINI, { prompt: 200_000n, completion: 4_000n }, 250_000n + 40_000n],
    // "Output price (including thinking tokens)".
    [
      'Google, above 200K with thinking',
      GEMINI,
      { prompt: 200_001n, completion: 1_000n, internal_reasoning: 3_000n },
      500_003n + 60_000n,
    ],
    ['Google, cached', GEMINI, { prompt: 1_000n, input_cache_read: 100_000n, completion: 0n }, 1_250n + 12_500n],
    ['Google, grounding', GEMINI, { prompt: 0n, completion: 0n, web_search: 1_000n }, 14_000_000n],
    ['Google, sound', GEMINI_FLASH, { prompt: 100n, audio: 1_920n, input_audio_cache: 100n, completion: 10n }, 1_985n],
    // "1,290 tokens per image up to 1024x1024px, equivalent to $0.039 per image".
    ['Google, an image', GEMINI_IMAGE, { prompt: 0n, completion: 0n, image_output: 1_290n }, 38_700n],
  ])('%s', (_name, at, usage, micro) => {
    expect(cost(at, usage)).toBe(micro);
  });
});

const anyRate = fc.oneof(fc.constant(0n), fc.bigInt({ min: 0n, max: 10n ** 9n }));
const anyMeterRates = fc.record(Object.fromEntries(METERS.map((meter) => [meter, anyRate])), { requiredKeys: [] });
/** Thresholds are small, so that prompts are often at them. */
const anyRates: fc.Arbitrary<Rates> = fc
  .tuple(
    anyMeterRates,
    fc.uniqueArray(fc.nat({ max: 60 }), { maxLength: 3 }),
    fc.array(anyMeterRates, { minLength: 3, maxLength: 3 }),
  )
  .map(([base, thresholds, more]) => {
    let before = base;
    const tiers = thresholds
      .toSorted((a, b) => a - b)
      .map((above, index) => {
        before = { ...before, ...more[index] };
        return { above: BigInt(above + 1), rates: before };
      });
    return tiers.length === 0 ? base : { ...base, tiers };
  });

/** A bound, and a use of the call that is within it. */
const bounded = fc
  .record({
    prompt: fc.nat({ max: 70 }),
    completion: fc.nat({ max: 70 }),
    excluded: fc.uniqueArray(fc.constantFrom(...TOKEN_PARTS.prompt, ...TOKEN_PARTS.completion)),
    shares: fc.array(fc.nat({ max: 100 }), { minLength: 10, maxLength: 10 }),
    unsaid: fc.tuple(fc.nat({ max: 10 }), fc.nat({ max: 10 })),
    searches: fc.nat({ max: 5 }),
    made: fc.nat({ max: 5 }),
    images: fc.nat({ max: 3 }),
  })
  .map(({ prompt, completion, excluded, shares, unsaid, searches, made, images }) => {
    const most: Record<string, bigint> = {
      prompt: BigInt(prompt),
      completion: BigInt(completion),
      web_search: BigInt(searches),
      image: BigInt(images),
    };
    for (const part of excluded) most[part] = 0n;
    const used: Record<string, bigint> = { web_search: BigInt(Math.min(made, searches)), image: BigInt(images) };
    let index = 0;
    for (const whole of ['prompt', 'completion'] as const) {
      let left = Math.max(0, (whole === 'prompt' ? prompt : completion) - unsaid[whole === 'prompt' ? 0 : 1]);
      for (const part of TOKEN_PARTS[whole]) {
        const units = excluded.includes(part) ? 0 : Math.floor((left * shares[index++ % shares.length]!) / 100);
        used[part] = BigInt(units);
        left -= units;
      }
      used[whole] = BigInt(left);
    }
    const both: { readonly most: Usage; readonly used: Usage } = { most, used };
    return both;
  });

const RUNS = { numRuns: process.env['TOLLGATE_DEEP'] === '1' ? 1_000_000 : 3_000 };

describe('the lock of a call', () => {
  test('is never below its charge, whatever the tokens turn out to be', () => {
    fc.assert(
      fc.property(anyRates, bounded, (at, { most, used }) => {
        if (cost(at, used) > costAtMost(at, most)) throw new Error(`${cost(at, used)} > ${costAtMost(at, most)}`);
      }),
      RUNS,
    );
  });

  test('is the charge of some use within its bounds, so it is not above what the call can reach', () => {
    fc.assert(
      fc.property(anyRates, fc.nat({ max: 70 }), fc.nat({ max: 70 }), (at, prompt, completion) => {
        const most = costAtMost(at, { prompt: BigInt(prompt), completion: BigInt(completion) });
        const parts = (whole: 'prompt' | 'completion') => [whole, ...TOKEN_PARTS[whole]];
        let reached = 0n;
        // Without exclusions all tokens are the dearest part. The highest sum may be that of a shorter prompt.
        for (let tokens = 0; tokens <= prompt; tokens++)
          for (const read of parts('prompt'))
            for (const written of parts('completion')) {
              const charge = cost(at, { [read]: BigInt(tokens), [written]: BigInt(completion) });
              if (charge > reached) reached = charge;
            }
        if (reached !== most) throw new Error(`${reached} is reached, ${most} is locked`);
      }),
      { numRuns: 60 },
    );
  });

  test.each([
    [271_999n, 'first'],
    [272_000n, 'first'],
    [272_001n, 'second'],
  ] as const)('of a prompt of at most %s tokens is that of the %s tier', (prompt, tier) => {
    const most = { prompt, completion: 10n, web_search: 0n };
    const [read, write] = tier === 'first' ? [2_500_000n, 10_000_000n] : [5_000_000n, 15_000_000n];
    expect(costAtMost(GPT, most)).toBe((read * prompt + write * 10n + 999_999n) / 1_000_000n);
  });

  test('leaves out what the request cannot cause', () => {
    const most = { prompt: 1_000n, completion: 1_000n };
    expect(costAtMost(OPUS, most)).toBe(10_000n + 25_000n);
    expect(costAtMost(OPUS, { ...most, input_cache_write_1h: 0n })).toBe(6_250n + 25_000n);
    expect(costAtMost(OPUS, { ...most, web_search: 5n })).toBe(10_000n + 25_000n + 50_000n);
    expect(costAtMost(GPT_AUDIO, { ...most, audio: 0n, input_audio_cache: 0n, audio_output: 0n })).toBe(
      2_500n + 10_000n,
    );
    expect(costAtMost(GPT_AUDIO, { ...most, audio: 100n, input_audio_cache: 0n, audio_output: 0n })).toBe(
      3_200n + 2_250n + 10_000n,
    );
  });
});

describe('the charge by service tier', () => {
  const price = (id: string, of: Rates): Price => ({ id, rates: of });
  /* GPT-5.5: flex and batch are half of the standard price, priority is two and a half times as much. */
  const standard = price('standard', rates({ prompt: 5, completion: 30, input_cache_read: 0.5 }));
  const flex = price('flex', rates({ prompt: 2.5, completion: 15, input_cache_read: 0.25 }));
  const priority = price('priority', rates({ prompt: 12.5, completion: 75, input_cache_read: 1.25 }));
  const tiers = { flex, priority, batch: price('batch', flex.rates), [DEFAULT_TIER]: standard };
  const usage = { prompt: 1_000n, completion: 1_000n };

  test.each([
    // asked, claimed, charged
    ['default', null, 'standard', 35_000n],
    ['default', 'default', 'standard', 35_000n],
    ['default', 'flex', 'flex', 17_500n],
    ['default', 'priority', 'standard', 35_000n],
    ['default', 'nobody knows', 'standard', 35_000n],
    ['flex', 'flex', 'flex', 17_500n],
    ['flex', 'default', 'flex', 17_500n],
    ['flex', 'priority', 'flex', 17_500n],
    ['flex', null, 'flex', 17_500n],
    ['priority', 'priority', 'priority', 87_500n],
    ['priority', 'default', 'standard', 35_000n],
    ['priority', 'flex', 'flex', 17_500n],
    ['priority', null, 'standard', 35_000n],
    ['priority', 'toString', 'standard', 35_000n],
    ['priority', 'batch', 'batch', 17_500n],
  ] as const)('asked for %s, served %s: %s', (asked, claimed, charged, micro) => {
    const settled = settledPrice(tiers[asked], tiers, claimed, usage);
    expect(settled.id).toBe(charged);
    expect(cost(settled.rates, usage)).toBe(micro);
  });

  test('is compared for the usage of the call, so a tier that is dearer for long prompts only is cheaper for short ones', () => {
    const long = price('long', { ...flex.rates, tiers: [{ above: 1_000n, rates: priority.rates }] });
    const of = { default: standard, long };
    expect(settledPrice(standard, of, 'long', { prompt: 1_000n, completion: 1n })).toBe(long);
    expect(settledPrice(standard, of, 'long', { prompt: 1_001n, completion: 1n })).toBe(standard);
  });

  test('is never above that of the asked tier, so the lock of the asked tier holds it', () => {
    fc.assert(
      fc.property(
        anyRates,
        anyRates,
        anyRates,
        bounded,
        fc.constantFrom('a', 'b', 'default', 'other', null),
        (a, b, c, { most, used }, claimed) => {
          const all = { a: price('a', a), b: price('b', b), default: price('c', c) };
          for (const asked of Object.values(all)) {
            const settled = settledPrice(asked, all, claimed, used);
            if (cost(settled.rates, used) > costAtMost(asked.rates, most)) throw new Error('above its lock');
            if (cost(settled.rates, used) > cost(asked.rates, used)) throw new Error('above what was asked');
          }
        },
      ),
      RUNS,
    );
  });
});

describe('tiers', () => {
  test('survive being stored, as members that an earlier version reads as amounts', () => {
    fc.assert(
      fc.property(anyRates, (at) => {
        const json = JSON.parse(JSON.stringify(ratesToJson(at))) as Record<string, string>;
        for (const value of Object.values(json)) expect(BigInt(value)).toBeGreaterThanOrEqual(0n);
        // A tier without any rate cannot be told from no tier. No price has one.
        const tiers = at.tiers?.filter((tier) => Object.keys(tier.rates).length > 0);
        const { tiers: _all, ...base } = at;
        expect(ratesFromJson(json)).toEqual(tiers?.length ? { ...base, tiers } : base);
      }),
    );
    expect(ratesToJson(GEMINI)).toMatchObject({ prompt: '1250000', 'prompt>200000': '2500000' });
    expect(ratesFromJson({ prompt: '1', 'of a later version': '2', 'later>5': '3' })).toEqual({ prompt: 1n });
  });

  test('count all tokens of a prompt, and only these', () => {
    const usage = Object.fromEntries(METERS.map((meter) => [meter, 1n]));
    expect(promptTokens(usage)).toBe(6n);
    expect(completionTokens(usage)).toBe(4n);
    expect(ratesAt(GEMINI, 200_000n)).toBe(GEMINI);
  });

  test('that rise are a jump, each threshold for itself', () => {
    const flat = rates({ prompt: 1.25, completion: 10 });
    const doubled = rates({ prompt: 1.25, completion: 10 }, { above: 200_000n, to: { prompt: 2.5 } });
    const tripled = rates({ prompt: 1.25, completion: 10 }, { above: 200_000n, to: { prompt: 3.75 } });
    expect(ratesAbove(doubled, flat)).toBe(false);
    expect(ratesAbove(tripled, flat)).toBe(true);
    expect(ratesAbove(flat, tripled)).toBe(false);
    expect(jumpsBetween(tripled, flat)).toEqual([
      { meter: 'prompt', above: 200_000n, from: 1_250_000n, to: 3_750_000n },
    ]);
    // The same rates from a lower threshold on.
    const earlier = rates({ prompt: 1.25, completion: 10 }, { above: 100_000n, to: { prompt: 3.75 } });
    expect(jumpsBetween(earlier, tripled)).toMatchObject([{ above: 100_000n }]);
    expect(ratesAbove(tripled, earlier)).toBe(false);
  });

  test('of the lowest price are the lowest of both at each length', () => {
    fc.assert(
      fc.property(anyRates, anyRates, fc.bigInt({ min: 0n, max: 70n }), (one, other, tokens) => {
        const usage = { prompt: tokens, completion: 3n, audio_output: 2n };
        const least = cost(leastRates(one, other), usage);
        expect(least).toBeLessThanOrEqual(cost(one, usage));
        expect(least).toBeLessThanOrEqual(cost(other, usage));
      }),
    );
  });
});
