import { describe, expect, test } from 'vitest';
import { block, load, problemsOf } from './load.ts';

const serviceOf = (changes: Readonly<Record<string, string>>) => load(block('images', changes)).services[0]!.service;

describe('the tiers of an image service', () => {
  test('have prices of their own', () => {
    expect(serviceOf({ 'pricing.resolutions.2K': '0.06', 'pricing.resolutions.4K': '"0.12"' })).toMatchObject({
      rates: { image: 30_000_000_000n },
      variants: { '2K': { image: 60_000_000_000n }, '4K': { image: 120_000_000_000n } },
      media: { resolutions: ['2K', '4K'] },
    });
  });

  test('may include some without', () => {
    const service = serviceOf({ resolutions: '["1K", "2K"]', 'pricing.resolutions.2K': '0.06' });
    expect(Object.keys(service.variants)).toEqual(['2K']);
    expect(service).toMatchObject({ media: { resolutions: ['1K', '2K'] } });
  });

  test('are listed where any are', () => {
    expect(problemsOf(block('images', { resolutions: '["1K"]', 'pricing.resolutions.2K': '0.06' }))).toMatchObject([
      { key: 'images[0].pricing.resolutions.2K', wrong: 'is not in resolutions' },
    ]);
  });
});
