import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { load, modelBlock, problemsOf } from './load.ts';

const promptRate = (toml: string) => load(modelBlock({ 'pricing.prompt': toml })).services[0]!.rates.prompt;

describe('a price', () => {
  test.each([
    ['0', 0n],
    ['0.0', 0n],
    ['2', 2_000_000n],
    ['0.1', 100_000n],
    ['0.000001', 1n],
    ['1e-6', 1n],
    ['"0.000001"', 1n],
    ['"2.50"', 2_500_000n],
    ['10_000', 10_000_000_000n],
    ['1_234.567891', 1_234_567_891n],
  ])('%s USD per 1M is kept exactly', (toml, rate) => {
    expect(promptRate(toml)).toBe(rate);
  });

  test.each([
    ['-1'],
    ['-0.1'],
    ['"-1"'],
    ['1e-7'],
    ['0.0000025'],
    ['1e-30'],
    ['10_000.000001'],
    ['1e30'],
    ['nan'],
    ['inf'],
    ['true'],
    ['""'],
    ['"free"'],
    ['"1,5"'],
    ['[1]'],
    ['9223372036854775807'],
  ])('%s is refused with the unit', (toml) => {
    const problems = problemsOf(modelBlock({ 'pricing.prompt': toml }));
    expect(problems).toMatchObject([{ key: 'models[0].pricing.prompt' }]);
    expect(problems[0]!.right).toContain('per 1M prompt tokens');
  });

  test('of an image is per image', () => {
    expect(load(modelBlock({ 'pricing.image': '0.000001' })).services[0]!.rates.image).toBe(1_000_000n);
    expect(problemsOf(modelBlock({ 'pricing.image': '1_000.01' }))[0]!.right).toContain('per input image');
  });

  test('any decimal of micro-USD comes back as itself, written as number or text', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 10_000_000_000 }), fc.boolean(), (micro, quoted) => {
        const text = `${Math.floor(micro / 1e6)}.${String(micro % 1e6).padStart(6, '0')}`;
        expect(promptRate(quoted ? `"${text}"` : text)).toBe(BigInt(micro));
      }),
      { numRuns: process.env['TOLLGATE_DEEP'] === '1' ? 100_000 : 500 },
    );
  });
});
