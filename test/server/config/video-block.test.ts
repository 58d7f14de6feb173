import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { block, load, problemsOf } from './load.ts';

const videoOf = (changes: Readonly<Record<string, string>>) => load(block('videos', changes)).services[0]!.service;

describe('the price of a video', () => {
  test('is one for each resolution, without and with sound, and the base once in each', () => {
    const service = videoOf({
      'pricing.per_second.1080p': '0.2',
      'pricing.base': '0.05',
      'pricing.audio_multiplier': '"1.25"',
    });
    const call = 50_000_000_000n;
    expect(service.variants).toEqual({
      '720p': { second: 100_000_000_000n, call },
      '720p+audio': { second: 125_000_000_000n, call },
      '1080p': { second: 200_000_000_000n, call },
      '1080p+audio': { second: 250_000_000_000n, call },
    });
    expect(service).toMatchObject({ media: { resolutions: ['720p', '1080p'] } });
  });

  test('is the dearest of them where no resolution is named', () => {
    expect(videoOf({ 'pricing.per_second.480p': '0.05', 'pricing.audio_multiplier': '2' }).rates).toEqual({
      second: 200_000_000_000n,
    });
  });

  test('with sound is exact or refused', () => {
    const [problem] = problemsOf(
      block('videos', { 'pricing.per_second.720p': '0.05', 'pricing.audio_multiplier': '1.333333' }),
    );
    expect(problem).toMatchObject({ key: 'videos[0].pricing.audio_multiplier', line: 12 });
    expect(problem!.wrong).toBe('times 0.05 USD is finer than 0.000001 USD per second of 720p');
    fc.assert(
      fc.property(
        fc.integer({ min: 100, max: 100_000_000 }),
        fc.integer({ min: 1_000, max: 10_000 }),
        fc.integer({ max: 9 }),
        (price, thousandths, rest) => {
          // Mostly three decimals, so that many products are exact.
          const multiplier = Math.min(thousandths * 1_000 + Math.max(0, rest), 10_000_000);
          const changes = {
            'pricing.per_second.720p': decimal(price),
            'pricing.audio_multiplier': `"${decimal(multiplier)}"`,
          };
          const product = BigInt(price) * BigInt(multiplier);
          if (product % 1_000_000n === 0n) expect(videoOf(changes).variants['720p+audio']).toEqual({ second: product });
          else expect(problemsOf(block('videos', changes))).toHaveLength(1);
        },
      ),
      { numRuns: 300 },
    );
  });
});

const decimal = (millionths: number) => `${Math.floor(millionths / 1e6)}.${String(millionths % 1e6).padStart(6, '0')}`;

test.each(['account_bytes_max', 'bytes_max'])('a store whose %s has no room for a file is refused', (key) => {
  expect(load(`[media]\nfile_bytes_max = 5000\n${key} = 5000`).media.fileBytesMax).toBe(5000);
  expect(problemsOf(`[media]\nfile_bytes_max = 5001\n${key} = 5000`)).toMatchObject([
    { key: `media.${key}`, wrong: 'is 5000, and media.file_bytes_max is 5001, so no video would fit' },
  ]);
});
