import { describe, expect, test } from 'vitest';
import { createRetryBudget } from '../../../../src/gateway/call/retry-budget.ts';
import { clock } from './offers.ts';

const granted = (budget: { take(): boolean }, wanted: number) =>
  Array.from({ length: wanted }, () => budget.take()).filter(Boolean).length;

describe('the retry budget', () => {
  test('has a reserve for a quiet gateway', () => {
    expect(granted(createRetryBudget({ now: clock() }), 100)).toBe(10);
  });

  test('grows with a fifth of the calls', () => {
    const now = clock();
    const budget = createRetryBudget({ now });
    for (let call = 0; call < 1000; call++) budget.called(now());
    expect(granted(budget, 1000)).toBe(210);
  });

  test('is not saved up over a long quiet time', () => {
    const now = clock();
    const budget = createRetryBudget({ now });
    for (let second = 0; second < 600; second++) {
      for (let call = 0; call < 100; call++) budget.called(now());
      now.advance(1_000);
    }
    // The last nine seconds' calls and the current, empty one: 900 calls.
    expect(granted(budget, 10_000)).toBe(190);
  });

  test('comes back after ten seconds', () => {
    const now = clock();
    const budget = createRetryBudget({ now });
    expect(granted(budget, 20)).toBe(10);
    now.advance(5_000);
    expect(granted(budget, 20)).toBe(0);
    now.advance(5_000);
    expect(granted(budget, 20)).toBe(10);
  });

  test('keeps an outage of everything from being multiplied', () => {
    const now = clock();
    const budget = createRetryBudget({ now });
    let attempts = 0;
    const calls = 10_000;
    for (let call = 0; call < calls; call++) {
      budget.called(now());
      attempts++;
      for (let retry = 0; retry < 2 && budget.take(); retry++) attempts++;
      now.advance(1);
    }
    expect(attempts).toBeLessThanOrEqual(calls * 1.2 + 10 + 200);
    expect(attempts).toBeGreaterThan(calls * 1.19);
  });
});
