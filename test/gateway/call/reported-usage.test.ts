import { describe, expect, test } from 'vitest';
import { clampReportedUsage, readReportedUsage } from '../../../src/gateway/call/reported-usage.ts';

describe('a claim', () => {
  test.each([
    [
      { prompt: 120, completion: 30, second: 1.5 },
      { call: 1n, prompt: 120n, completion: 30n, second: 2n },
    ],
    [
      { prompt_tokens: 120, completion_tokens: 0, seconds: null },
      { call: 1n, prompt: 120n, completion: 0n },
    ],
    [{ prompt: Number.MAX_SAFE_INTEGER }, { call: 1n, prompt: BigInt(Number.MAX_SAFE_INTEGER) }],
    [{ words: 7 }, { call: 1n }],
  ])('%j is read', (claim, usage) => {
    expect(readReportedUsage(claim)).toEqual({ usage, flags: [] });
  });

  test.each([
    [undefined, 'usage_missing'],
    [null, 'usage_missing'],
    ['120', 'usage_invalid'],
    [{ prompt: '120' }, 'usage_invalid'],
    [{ completion: -1 }, 'usage_invalid'],
    [{ second: Infinity }, 'usage_invalid'],
    [{ prompt: 2 ** 53 }, 'usage_invalid'],
  ])('%j does not count: %s', (claim, flag) => {
    expect(readReportedUsage(claim)).toEqual({ usage: null, flags: [flag] });
  });
});

describe('a claim of work with 100 bytes of request and 50 of answer, in 2.1 seconds', () => {
  const WORK = { elapsedMs: 2_100, bytesIn: 100, bytesOut: 50 };
  const MOST = { call: 1n, prompt: 662n, completion: 82n, second: 4n };
  const clamped = (usage: object, kind: 'tunnel' | 'direct') =>
    clampReportedUsage({ usage: { call: 1n, ...usage }, flags: [] }, { endpoint: { kind } as never }, WORK);

  test('is plausible up to the most that such work can use', () => {
    expect(clamped(MOST, 'tunnel')).toEqual({ usage: MOST, flags: [] });
  });

  test.each([
    ['prompt', 663n],
    ['completion', 83n],
    ['second', 5n],
  ] as const)(
    'is cut to that and flagged for one %s more, and charged as it is at the operator’s own',
    (meter, units) => {
      const flags = [{ claims: [{ meter, claimed: Number(units), most: Number(MOST[meter]) }] }];
      expect(clamped({ [meter]: units }, 'tunnel')).toEqual({ usage: { call: 1n, [meter]: MOST[meter] }, flags });
      expect(clamped({ [meter]: units }, 'direct')).toEqual({ usage: { call: 1n, [meter]: units }, flags });
    },
  );
});
