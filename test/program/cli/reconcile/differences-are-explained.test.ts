import { expect, it } from 'vitest';
import { compare, type OwnRow } from '../../../../src/program/cli/reconcile/compare.ts';
import { explain } from '../../../../src/program/cli/reconcile/explain.ts';
import { NOTHING_TOLD, type VendorRow } from '../../../../src/program/cli/reconcile/vendor-row.ts';

const DAY = '2026-11-02';
const NEXT = '2026-11-03';
const OWN: OwnRow = {
  date: DAY,
  model: 'gpt-4o',
  service: 'acme/chat',
  provider: 'openai',
  offered: true,
  requests: 10,
  free: 0,
  measured: 0,
  claims: 0,
  refused: 0,
  broken: 0,
  aborted: 0,
  own_keys: 0,
  prompt_tokens: 1_000,
  completion_tokens: 100,
  cached_tokens: 0,
  reasoning_tokens: 0,
  charged_micro_usdc: 5_000,
  fee_micro_usdc: 0,
  cost_micro_usd: 3_500,
};
const own = (row: Partial<OwnRow> = {}): OwnRow => ({ ...OWN, ...row });
const billed = (row: Partial<VendorRow> = {}): VendorRow => ({
  ...NOTHING_TOLD,
  day: DAY,
  model: 'gpt-4o-2024-08-06',
  requests: 10,
  prompt: 1_000,
  completion: 100,
  ...row,
});

const kinds = (vendor: readonly VendorRow[], here: readonly OwnRow[], archivedBefore: string | null = null) => {
  const comparison = compare(vendor, here, 0.01);
  return [comparison.isBeyond, explain(comparison, archivedBefore, DAY).map(({ kind }) => kind)];
};

it('two versions of a model and two offers of it are one line', () => {
  const { lines } = compare(
    [
      billed({ requests: 4, prompt: 400, completion: 40 }),
      billed({ model: 'gpt-4o', requests: 6, prompt: 600, completion: 60 }),
    ],
    [
      own({ requests: 3, prompt_tokens: 300, completion_tokens: 30 }),
      own({ requests: 7, prompt_tokens: 700, completion_tokens: 70 }),
    ],
    0,
  );
  expect(lines).toMatchObject([{ model: 'gpt-4o', difference: 0, isBeyond: false }]);
});

it('equal sides need no reason; each fact of the calls is one', () => {
  expect(kinds([billed()], [own()])).toEqual([false, []]);
  expect(kinds([billed()], [own({ aborted: 1, free: 1, measured: 1, claims: 1, own_keys: 1, broken: 1 })])).toEqual([
    false,
    ['broken', 'aborted', 'free', 'measured', 'claims', 'own_keys'],
  ]);
  expect(kinds([billed({ reasoning: 7, cached: 3 })], [own()])).toEqual([false, ['cached', 'reasoning']]);
  expect(kinds([billed()], [own()], NEXT)).toEqual([false, ['archived']]);
});

it('a model of one side alone is beyond every bound', () => {
  expect(kinds([billed()], [own(), own({ model: 'o3' })])).toEqual([true, ['not_billed', 'requests']]);
  expect(kinds([billed(), billed({ model: 'o3' })], [own()])).toEqual([true, ['not_ours', 'requests']]);
});

it('tokens of calls that are not of this gateway are no reasoning and no cache', () => {
  const foreign = { requests: 2, prompt: 31, completion: 400, cached: 9, reasoning: 300 };
  const here = [own(), own({ date: NEXT })];
  const vendor = [billed(), billed({ day: NEXT, requests: 12, prompt: 1_031, completion: 500 })];
  const zero = { cached: 0, reasoning: 0 };
  // Of a model that nobody calls here, and of one that is called here; with reasoning in the export or without.
  expect(kinds([billed(zero), billed({ model: 'o3', ...foreign })], [own()])).toEqual([true, ['not_ours', 'requests']]);
  expect(kinds([billed(), billed({ model: 'o3', requests: null, completion: 400 })], [own()])[1]).toEqual(['not_ours']);
  expect(kinds(vendor, here)).toEqual([true, ['requests']]);
  expect(kinds([billed(zero), { ...vendor[1]!, cached: 9, reasoning: 300 }], here)).toEqual([true, ['requests']]);
  // A day without them shows what the replies did not report.
  expect(kinds([billed({ completion: 140 }), vendor[1]!], here)).toEqual([true, ['requests', 'reasoning']]);
  expect(kinds([billed({ ...zero, reasoning: 7 }), { ...vendor[1]!, ...zero }], here)[1]).toEqual([
    'requests',
    'reasoning',
  ]);
});

it('what broke off of one model does not explain foreign calls of another', () => {
  const comparison = compare([billed(), billed({ model: 'o3', requests: 2 })], [own({ broken: 2 })], 0.01);
  expect(explain(comparison, null, DAY).find(({ kind }) => kind === 'requests')?.text).toContain(
    '2 requests more than calls were served here; 0 of them may be attempts that broke off',
  );
});

it('calls over midnight shift between days, and the model agrees', () => {
  const vendor = [
    billed({ requests: 5, prompt: 500, completion: 50 }),
    billed({ day: NEXT, requests: 5, prompt: 500, completion: 50 }),
  ];
  const here = [
    own({ requests: 4, prompt_tokens: 400, completion_tokens: 40 }),
    own({ date: NEXT, requests: 6, prompt_tokens: 600, completion_tokens: 60 }),
  ];
  expect(kinds(vendor, here)).toEqual([false, ['neighbouring_days']]);
});

it('costs: rounding, an unknown cost, a loss, and the margin', () => {
  const cost = (micro: bigint) => billed({ cost: micro * 1_000_000n });
  expect(kinds([cost(3_495n)], [own()])).toEqual([false, ['rounding']]);
  // Rounding up here can only make it more here.
  expect(kinds([cost(3_505n)], [own()])).toEqual([false, []]);
  expect(kinds([cost(4_000n)], [own()])).toEqual([true, ['price']]);
  expect(kinds([cost(4_000n)], [own({ cost_micro_usd: null })])).toEqual([false, ['cost_unknown']]);
  expect(kinds([cost(6_000n)], [own()])).toEqual([true, ['loss', 'price']]);
  // Of other tokens the price is not known to differ.
  expect(kinds([billed({ cost: 4_000_000_000n, completion: 101 })], [own()])[1]).not.toContain('price');
  expect(compare([cost(4_000n)], [own()], 0.01).totals.margin).toBe(1_000);
  expect(compare([billed()], [own()], 0.01).totals.margin).toBe(1_500);
});

it('costs of a day without models are compared with all models of that day', () => {
  const vendor = [{ ...NOTHING_TOLD, day: DAY, model: null, cost: 7_000_000_000n }];
  const { lines, models, isBeyond } = compare(vendor, [own(), own({ model: 'o3' })], 0.01);
  expect([models, isBeyond]).toEqual([[], false]);
  expect(lines).toMatchObject([{ date: DAY, model: null, settled: { cost: 7_000, charged: 10_000 }, margin: 3_000 }]);
});
