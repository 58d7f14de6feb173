import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { formatUsd, MICRO_USD_MAX, MoneyError, parseUsd, toUsdNumber } from '#billing/amounts';

const microUsd = fc.bigInt({ min: 0n, max: MICRO_USD_MAX });

describe('an amount of USD', () => {
  test.each([
    ['0', 0n],
    ['0.000001', 1n],
    ['1', 1_000_000n],
    ['1.50', 1_500_000n],
    [' 2 ', 2_000_000n],
    ['1000000000', MICRO_USD_MAX],
    [0, 0n],
    [-0, 0n],
    [0.1, 100_000n],
    [1e-6, 1n],
    [2.5e-5, 25n],
    [1e9, MICRO_USD_MAX],
  ])('%s is %s micro-USD', (given, expected) => {
    expect(parseUsd(given)).toBe(expected);
  });

  test.each([
    '',
    '-1',
    '+1',
    '1e3',
    '0x10',
    '1,5',
    '.5',
    '5.',
    '1.0000001',
    'NaN',
    '∞',
    '１',
    '1000000000.000001',
    '9'.repeat(400),
    -1,
    -1e-9,
    1e-7,
    1e30,
    Number.NaN,
    Infinity,
    null,
    undefined,
    true,
    {},
    [],
    1n,
  ])('%s is none', (given) => {
    expect(() => parseUsd(given, 'pricing.prompt')).toThrow(MoneyError);
    expect(() => parseUsd(given, 'pricing.prompt')).toThrow(/^pricing\.prompt/);
  });

  test('survives being written and read, as text and as number', () => {
    fc.assert(
      fc.property(microUsd, (amount) => {
        expect(parseUsd(formatUsd(amount))).toBe(amount);
        expect(BigInt(Math.round(toUsdNumber(amount) * 1e6))).toBe(amount);
      }),
    );
  });

  test('of any text is read or refused with a MoneyError', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.double(), fc.integer(), fc.anything()), (given) => {
        try {
          expect(parseUsd(given)).toBeGreaterThanOrEqual(0n);
        } catch (error) {
          expect(error).toBeInstanceOf(MoneyError);
        }
      }),
      { numRuns: process.env['TOLLGATE_DEEP'] === '1' ? 1_000_000 : 600 },
    );
  });

  test('below 0 is written with its sign', () => {
    expect(formatUsd(-1_500_000n)).toBe('-1.5');
  });
});
