import { expect, test } from 'vitest';
import { settleOf } from '../../src/billing/settle-call.ts';
import { CRASH_PRICE } from '../support/crash-price.ts';

// CRASH_PRICE is 1 micro-USD for a call, so the usage is the price.
const usage = { call: 60n };
const QUOTE = { price: CRASH_PRICE, estimate: 100n };
type End = Omit<Parameters<typeof settleOf>[2], 'costMax' | 'provider'> & { readonly costMax?: bigint };

test.each<[string, End, bigint]>([
  ['costs what it used', { outcome: 'complete', usage }, 60n],
  ['costs what it used when it was cut', { outcome: 'cut', usage }, 60n],
  ['costs nothing without usage', { outcome: 'complete', usage: null }, 0n],
  ['costs nothing if its outcome is free, whatever it used', { outcome: 'free', usage }, 0n],
  ['costs all of its estimate', { outcome: 'complete', usage: { call: 100n } }, 100n],
  ['costs at most its estimate', { outcome: 'complete', usage: { call: 101n } }, 100n],
  ['costs at most what its answer is worth', { outcome: 'complete', usage, costMax: 25n }, 25n],
  ['costs no more for an answer that is worth more', { outcome: 'complete', usage, costMax: 90n }, 60n],
])('a call %s', (_name, end, charge) => {
  expect(settleOf('gen-1', QUOTE, { provider: 'p', costMax: null, ...end }, '{}', 0)).toMatchObject({ charge });
});
