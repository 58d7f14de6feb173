import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { promptTokens } from '#billing/amounts';
import { measureUsage, readUsage, NO_DETAILS } from '../../src/openai/chat/reply/chat-usage.ts';
import { PLAIN } from '../../src/openai/chat/price/priced-parts.ts';
import type { UnseenTokens } from '../../src/openai/chat/request/chat-budget.ts';
import { CONTEXT, USAGE } from './support/replies.ts';

const of = (outputBytes: number) => ({ outputBytes, otherBytes: 0 });
const CACHE_PARTS = { ...PLAIN, priced: new Set(['input_cache_read', 'input_cache_write'] as const) };
const read = (claim: unknown, outputBytes = 40) => readUsage(claim, CONTEXT, of(outputBytes));

describe('a claim of usage', () => {
  it.each([
    ['null', null, 'usage_missing'],
    ['undefined', undefined, 'usage_missing'],
    ['an empty object', {}, 'usage_invalid'],
    ['an array', [], 'usage_invalid'],
    ['a text', 'many', 'usage_invalid'],
    ['negative', { prompt_tokens: -1, completion_tokens: 2 }, 'usage_invalid'],
    ['texts that look like numbers', { prompt_tokens: '1', completion_tokens: '2' }, 'usage_invalid'],
    ['no number', { prompt_tokens: Number.NaN, completion_tokens: 2 }, 'usage_invalid'],
    ['infinite', { prompt_tokens: 1, completion_tokens: Number.POSITIVE_INFINITY }, 'usage_invalid'],
    ['1e300', { prompt_tokens: 1, completion_tokens: 1e300 }, 'usage_invalid'],
    ['a fraction', { prompt_tokens: 1.5, completion_tokens: 2 }, 'usage_invalid'],
    ['only half', { prompt_tokens: 3 }, 'usage_invalid'],
    ['null inside', { prompt_tokens: 3, completion_tokens: null }, 'usage_invalid'],
  ])('that is %s is worth nothing', (_name, claim, flag) => {
    expect(read(claim)).toEqual({
      usage: null,
      flags: [flag],
      shownUsage: { prompt_tokens: 10, completion_tokens: 10, total_tokens: 20, estimated: true },
      details: NO_DETAILS,
    });
  });

  it('is taken as it is when it is plausible', () => {
    expect(read(USAGE)).toEqual({
      usage: { prompt: 12n, completion: 5n },
      flags: [],
      shownUsage: USAGE,
      details: NO_DETAILS,
    });
    expect(read({ prompt_tokens: 0, completion_tokens: 0 })).toEqual({
      usage: { prompt: 0n, completion: 0n },
      flags: [],
      shownUsage: { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 },
      details: NO_DETAILS,
    });
    expect(read({ ...USAGE, total_tokens: null }).flags).toEqual([]);
  });

  it.each([
    [18, { claimed: 18, most: 17 }],
    [16, { claimed: 16, least: 17 }],
    ['17', { claimed: null, least: 17 }],
  ])('whose total is %s instead of 17 is billed by its parts, and flagged', (total, claim) => {
    expect(read({ ...USAGE, total_tokens: total })).toEqual({
      usage: { prompt: 12n, completion: 5n },
      flags: [{ claims: [{ meter: 'total', ...claim }] }],
      shownUsage: USAGE,
      details: NO_DETAILS,
    });
  });

  it('counts reasoning as completion if it is the rest of the total', () => {
    const claim = (reasoning: number, total: number) => ({
      prompt_tokens: 10,
      completion_tokens: 3,
      total_tokens: total,
      completion_tokens_details: { reasoning_tokens: reasoning },
    });
    const trusted = readUsage(claim(987, 1_000), CONTEXT, of(5));
    expect(trusted).toMatchObject({
      usage: { prompt: 10n, completion: 990n },
      details: { reasoning: 987 },
      flags: [],
      shownUsage: { prompt_tokens: 10, completion_tokens: 990, total_tokens: 1_000 },
    });
    // The claim of a service that counts reasoning inside the completion.
    expect(readUsage({ ...claim(987, 1_000), completion_tokens: 990 }, CONTEXT, of(5))).toEqual(trusted);
    // What the model does not declare is paid only as far as output came.
    const dialled = { ...CONTEXT, unseen: { max: 0, usual: 0 } };
    expect(readUsage(claim(987, 1_000), dialled, of(5))).toMatchObject({
      usage: { completion: 5n + 32n },
      flags: [{ claims: [{ meter: 'completion', claimed: 990, most: 37 }] }],
      shownUsage: { completion_tokens: 37, total_tokens: 47 },
    });
    expect(readUsage(claim(987, 1_000), dialled, of(958))).toMatchObject({ usage: { completion: 990n }, flags: [] });
    const declared = { ...CONTEXT, unseen: { max: 1_000, usual: 0 } };
    expect(readUsage(claim(987, 1_000), declared, of(5))).toMatchObject({ usage: { completion: 990n }, flags: [] });
    // Beyond the cap.
    expect(readUsage(claim(9_987, 10_000), CONTEXT, of(5))).toMatchObject({
      usage: { completion: 1_000n },
      flags: [{ claims: [{ meter: 'completion', claimed: 9_990, most: 1_000 }] }],
    });
    // A total that is neither of the two sums.
    for (const total of [999, 1_001, 12])
      expect(readUsage(claim(987, total), CONTEXT, of(5))).toMatchObject({
        usage: { completion: 3n },
        flags: [{ claims: [{ meter: 'total', claimed: total, ...(total > 13 ? { most: 13 } : { least: 13 }) }] }],
        shownUsage: { completion_tokens: 3, total_tokens: 13 },
      });
    const most = Number.MAX_SAFE_INTEGER;
    expect(readUsage(claim(most, most), CONTEXT, of(5)).usage).toEqual({ prompt: 10n, completion: 3n });
  });

  it('keeps its details', () => {
    const claim = {
      ...USAGE,
      prompt_tokens_details: { cached_tokens: 3 },
      completion_tokens_details: { reasoning_tokens: 4 },
    };
    expect(read(claim).shownUsage).toEqual(claim);
  });

  it.each([
    ["as OpenAI's API has them", { prompt_tokens_details: { cached_tokens: 4, cache_write_tokens: 6 } }],
    ["by Anthropic's names", { cache_read_input_tokens: 4, cache_creation_input_tokens: 6 }],
    ['by names of routers', { prompt_tokens_details: { cached_tokens: 4, cache_creation_tokens: 6 } }],
  ])('is metered by the tokens of a cache where these have a price, %s', (_name, more) => {
    const claim = { ...USAGE, ...more };
    const priced = { ...CONTEXT, parts: CACHE_PARTS };
    expect(readUsage(claim, priced, of(40))).toMatchObject({
      usage: { prompt: 2n, completion: 5n, input_cache_read: 4n, input_cache_write: 6n },
      details: { cached: 4, cacheWritten: 6, reasoning: 0 },
      flags: [],
    });
    expect(read(claim)).toMatchObject({ usage: { prompt: 12n, completion: 5n }, details: { cached: 4 } });
    // A cache holds no more than the prompt.
    const beyond = { ...claim, prompt_tokens: 7, total_tokens: 12 };
    expect(readUsage(beyond, priced, of(40)).usage).toMatchObject({
      prompt: 0n,
      input_cache_read: 4n,
      input_cache_write: 3n,
    });
  });

  it('is cut to the budget when it is beyond it, and flagged', () => {
    expect(read({ prompt_tokens: 501, completion_tokens: 5 })).toMatchObject({
      usage: { prompt: 500n, completion: 5n },
      flags: [{ claims: [{ meter: 'prompt', claimed: 501, most: 500 }] }],
    });
    expect(read({ prompt_tokens: 12, completion_tokens: 5_000_000 })).toMatchObject({
      usage: { prompt: 12n, completion: 1000n },
      // 40 bytes, and 32 tokens that no reply shows.
      flags: [{ claims: [{ meter: 'completion', claimed: 5_000_000, most: 72 }] }],
      shownUsage: { completion_tokens: 1000, total_tokens: 1012 },
    });
    // All claims are one flag.
    expect(read({ prompt_tokens: 501, completion_tokens: 73, total_tokens: 1 }).flags).toEqual([
      {
        claims: [
          { meter: 'prompt', claimed: 501, most: 500 },
          { meter: 'completion', claimed: 73, most: 72 },
          { meter: 'total', claimed: 1, least: 574 },
        ],
      },
    ]);
  });

  it('is flagged where what was delivered cannot explain it, and cut where the model is bound by what it declares', () => {
    // A byte a token, and 32 for what no reply shows.
    const claim = { prompt_tokens: 12, completion_tokens: 900, total_tokens: 912 };
    const reasoned = { ...claim, completion_tokens_details: { reasoning_tokens: 880 } };
    const at = (unseen: UnseenTokens | null, given: object = claim, outputBytes = 40) =>
      readUsage(given, unseen === null ? CONTEXT : { ...CONTEXT, unseen }, of(outputBytes));
    const flagged = (most: number) => ({ flags: [{ claims: [{ meter: 'completion', claimed: 900, most }] }] });
    expect(at(null)).toMatchObject({ usage: { completion: 900n }, ...flagged(72) });
    expect(at(null, reasoned)).toMatchObject({ usage: { completion: 900n }, flags: [] });
    expect(at(null, claim, 868)).toMatchObject({ usage: { completion: 900n }, flags: [] });
    expect(at({ max: 0, usual: 0 })).toMatchObject({
      usage: { completion: 72n },
      shownUsage: { completion_tokens: 72, total_tokens: 84 },
      ...flagged(72),
    });
    expect(at({ max: 0, usual: 0 }, reasoned)).toMatchObject({ usage: { completion: 72n }, ...flagged(72) });
    expect(at({ max: 800, usual: 0 })).toMatchObject({ usage: { completion: 872n }, ...flagged(872) });
    expect(at({ max: 828, usual: 0 })).toMatchObject({ usage: { completion: 900n }, flags: [] });
    expect(
      readUsage(claim, { ...CONTEXT, unseen: { max: 0, usual: 0 } }, { outputBytes: 0, otherBytes: 868 }).flags,
    ).toEqual([]);
    // For each of three completions.
    const thrice = {
      ...CONTEXT,
      unseen: { max: 100, usual: 0 },
      budget: { ...CONTEXT.budget, completionCap: 400, completionTokensMax: 1200 },
    };
    expect(readUsage(claim, thrice, of(0)).usage).toMatchObject({ completion: BigInt(3 * 132) });
  });

  it('never bills more than the budget, whatever it is', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.anything(),
          fc.record({ prompt_tokens: fc.anything(), completion_tokens: fc.anything(), total_tokens: fc.anything() }),
          fc.record({ prompt_tokens: fc.maxSafeNat(), completion_tokens: fc.maxSafeNat() }),
          fc.record({
            prompt_tokens: fc.nat({ max: 600 }),
            completion_tokens: fc.nat({ max: 40 }),
            prompt_tokens_details: fc.oneof(fc.anything(), fc.record({ cached_tokens: fc.nat({ max: 900 }) })),
            cache_creation_input_tokens: fc.oneof(fc.anything(), fc.nat({ max: 900 })),
          }),
        ),
        (claim) => {
          const { usage, flags } = readUsage(claim, { ...CONTEXT, parts: CACHE_PARTS }, of(40));
          const parts = [usage?.prompt, usage?.input_cache_read, usage?.input_cache_write];
          expect(parts.every((units = 0n) => units >= 0n)).toBe(true);
          expect(
            usage === null || (promptTokens(usage) <= 500n && usage.completion! >= 0n && usage.completion! <= 1000n),
          ).toBe(true);
          expect(usage === null ? flags.length : 1).toBe(1);
        },
      ),
      { numRuns: process.env['TOLLGATE_DEEP'] === '1' ? 1_000_000 : 400 },
    );
  });

  it('is replaced by a measure only where the reply was cut', () => {
    expect(measureUsage(CONTEXT, of(41)).usage).toEqual({ prompt: 10n, completion: 11n });
    expect(measureUsage(CONTEXT, of(1e9)).usage).toEqual({ prompt: 10n, completion: 1000n });
    expect(measureUsage(CONTEXT, of(0)).usage).toBeNull();
    const reasons = { ...CONTEXT, unseen: { max: 900, usual: 300 } };
    expect(measureUsage(reasons, of(41)).usage).toEqual({ prompt: 10n, completion: 311n });
    expect(measureUsage(reasons, of(4_000)).usage).toEqual({ prompt: 10n, completion: 1000n });
    expect(measureUsage(reasons, of(0)).usage).toBeNull();
  });
});
