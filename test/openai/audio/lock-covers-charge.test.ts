import fc from 'fast-check';
import { expect, test } from 'vitest';
import { cost, costAtMost, type Rates } from '#billing/amounts';
import type { Offer } from '#catalog';
import {
  boundAsUsage as speechAsUsage,
  measureText,
  speechBound,
  speechUsed,
} from '../../../src/openai/audio/speech/speech-use.ts';
import {
  boundAsUsage,
  transcriptionBound,
  transcriptionUsed,
} from '../../../src/openai/audio/transcription/transcription-use.ts';

// Whatever a provider claims, a call costs at most what was locked for it, and what was cut is flagged.

const RUNS = process.env['TOLLGATE_DEEP'] === '1' ? 200_000 : 2_000;

const rate = fc.option(fc.bigInt({ min: 0n, max: 100_000_000n }), { nil: undefined });
const rates = fc
  .record({ prompt: rate, completion: rate, audio: rate, audio_output: rate, second: rate, character: rate })
  .map((all) => Object.fromEntries(Object.entries(all).filter(([, one]) => one !== undefined)) as Rates);
const tokens = fc.option(fc.integer({ min: 1, max: 20_000 }), { nil: null });
const offers = fc
  .record({ rates, maxOutputTokens: tokens, contextLength: fc.integer({ min: 1, max: 200_000 }), direct: fc.boolean() })
  .map(({ rates: of, direct, ...model }) => ({
    offer: {
      price: { id: 'p', rates: of },
      model,
      endpoint: { kind: direct ? 'direct' : 'tunnel' },
    } as unknown as Offer,
    of,
  }));
/** A number as a provider may claim it. */
const claimed = fc.oneof(
  fc.nat(100),
  fc.nat(),
  fc.double(),
  fc.constantFrom(null, undefined, -1, '12', '1e9', 'many', Number.MAX_SAFE_INTEGER, 2 ** 60),
);
const claims = fc.option(
  fc.record({
    type: fc.constantFrom('tokens', 'duration', 'other'),
    seconds: claimed,
    input_tokens: claimed,
    output_tokens: claimed,
    input_token_details: fc.option(fc.record({ audio_tokens: claimed, text_tokens: claimed }), { nil: null }),
  }),
  { nil: null },
);

test('of speech', () => {
  const bodies = fc.record({
    model: fc.constant('m'),
    input: fc.string({ minLength: 1, maxLength: 200, unit: 'grapheme' }),
    voice: fc.constant('v'),
    instructions: fc.option(fc.string({ maxLength: 50 }), { nil: null }),
    speed: fc.option(fc.double({ min: 0.25, max: 4, noNaN: true }), { nil: null }),
    response_format: fc.constantFrom('mp3', 'opus', 'aac', 'flac', 'wav', 'pcm', null),
  });
  const came = fc.record({ bytes: fc.nat(), whole: fc.boolean(), claim: claims });
  fc.assert(
    fc.property(bodies, offers, came, (body, { offer, of }, reply) => {
      const size = measureText(body);
      const bound = speechBound(size, offer);
      const { usage } = speechUsed(size, bound, offer, reply);
      expect(Object.values(usage).every((units) => units >= 0n)).toBe(true);
      expect(cost(of, usage)).toBeLessThanOrEqual(costAtMost(of, speechAsUsage(bound)));
    }),
    { numRuns: RUNS },
  );
});

test('of a transcription', () => {
  const sizes = fc.record({
    audio: fc
      .record({
        seconds: fc.double({ min: 0.001, max: 1e6, noNaN: true }),
        more: fc.double({ min: 0, max: 1e6, noNaN: true }),
      })
      .map(({ seconds, more }) => ({
        format: 'mp3' as const,
        seconds,
        secondsHeard: seconds + more,
        secondsMax: seconds + more,
      })),
    textBytes: fc.nat(100_000),
    samples: fc.nat(4),
  });
  const replies = fc.record({ usage: claims, duration: claimed, bytes: fc.nat(), mayClaim: fc.boolean() });
  fc.assert(
    fc.property(sizes, offers, replies, (size, { offer, of }, reply) => {
      const { usage } = transcriptionUsed(size, offer, reply);
      expect(Object.values(usage).every((units) => units >= 0n)).toBe(true);
      expect(cost(of, usage)).toBeLessThanOrEqual(costAtMost(of, boundAsUsage(transcriptionBound(size, offer))));
    }),
    { numRuns: RUNS },
  );
});

test('of a transcription that costs by its seconds and its tokens', () => {
  const offer = {
    price: { id: 'p', rates: { second: 1n, completion: 1n } },
    model: { contextLength: 1_000, maxOutputTokens: null },
    endpoint: { kind: 'direct' },
  } as unknown as Offer;
  const audio = { format: 'mp3', seconds: 10, secondsHeard: 10, secondsMax: 10 } as const;
  const usage = { input_tokens: 0, output_tokens: 9_000 };
  const { flags } = transcriptionUsed({ audio, textBytes: 0, samples: 0 }, offer, {
    usage,
    duration: 600,
    bytes: 100,
    mayClaim: true,
  });
  expect(flags).toEqual([
    {
      claims: [
        { meter: 'second', claimed: 600, most: 11 },
        { meter: 'completion', claimed: 9_000, most: 11 * 25 + 256 },
      ],
    },
  ]);
});
