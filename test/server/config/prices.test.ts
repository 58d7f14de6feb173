import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { load, modelBlock, problemsOf } from './load.ts';

const promptRate = (toml: string) => load(modelBlock({ 'pricing.prompt': toml })).services[0]!.service.rates.prompt;

describe('a price', () => {
  test.each([
    ['0', 0n],
    ['0.0', 0n],
    ['2', 2_000_000n],
    ['0.1', 100_000n],
    ['0.001', 1_000n],
    ['1e-3', 1_000n],
    ['"0.001001"', 1_001n],
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
    ['0.0009999999'],
    ['"0.0009999999999999999999999"'],
    ['1.0000001'],
    ['1979-05-27'],
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

  test.each([
    ['0.00000015', '0.15'],
    ['1.5e-7', '0.15'],
    ['"0.00000060"', '0.6'],
    ['0.00003', '30'],
  ])('of %s is told what it would be per 1M', (toml, perMillion) => {
    const [problem] = problemsOf(modelBlock({ 'pricing.completion': toml }));
    expect(problem!.wrong).toContain(`it looks like a price per token: per 1M tokens that is ${perMillion}`);
  });

  test.each([
    ['-1', 'is -1: it is less than 0'],
    ['1e-30', 'is 1e-30: it is less than 0.001 USD per 1M prompt tokens'],
    ['1e30', 'is 1e+30: it is more than 10000 USD per 1M prompt tokens'],
    ['inf', 'is Infinity: it is more than 10000 USD per 1M prompt tokens'],
    ['nan', 'is NaN: it must be a number of USD that is 0 or more, not NaN'],
    ['9223372036854775807', 'is 9223372036854775807: it is more than 10000 USD per 1M prompt tokens'],
    ['true', 'is true'],
    ['1979-05-27', 'is a date'],
    ['{ usd = 1 }', 'is a table'],
  ])('of %s is refused with: %s', (toml, wrong) => {
    expect(problemsOf(modelBlock({ 'pricing.prompt': toml }))[0]!.wrong).toBe(wrong);
  });

  test('of an image is per image', () => {
    expect(load(modelBlock({ 'pricing.image': '0.000001' })).services[0]!.service.rates.image).toBe(1_000_000n);
    expect(problemsOf(modelBlock({ 'pricing.image': '100.01' }))[0]!.right).toContain('per input image');
  });

  test('any decimal of micro-USD comes back as itself, written as number or text', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1_000, max: 10_000_000_000 }), fc.boolean(), (micro, quoted) => {
        const text = `${Math.floor(micro / 1e6)}.${String(micro % 1e6).padStart(6, '0')}`;
        expect(promptRate(quoted ? `"${text}"` : text)).toBe(BigInt(micro));
      }),
      { numRuns: process.env['TOLLGATE_DEEP'] === '1' ? 100_000 : 500 },
    );
  });
});
