import fc from 'fast-check';
import type { Ledger, Rates } from '#billing';

/** Commands over few names, so that they meet. A step's operations are submitted together. */
export type Command =
  | { readonly do: 'together'; readonly operations: readonly RandomOperation[] }
  | { readonly do: 'expire'; readonly limit: number }
  | { readonly do: 'wait'; readonly ms: number };

export type RandomOperation = (ledger: Ledger, now: number) => Promise<unknown>;

/** One micro-USD per call, so that `usage` can say any charge exactly. */
export const RATES: Rates = { call: 1_000_000n };
export const PROVIDERS = ['p1', 'p2'] as const;
export const BUDGETS = ['budget-1', 'budget-2'] as const;

const account = fc.constantFrom('alice', 'bob', 'nobody');
const lockId = fc.integer({ min: 0, max: 11 }).map((n) => `lock-${n}`);
const transferId = fc.integer({ min: 0, max: 15 }).map((n) => `transfer-${n}`);
const amount = fc.oneof(fc.constantFrom(0n, 1n, 100n), fc.bigInt({ min: 0n, max: 150n }));
const text = fc.constantFrom('{}', '{"a":"b\\"c\\\\d"}', '{"text":"ä 😀 \' , {} NULL"}', '');

/** An operation that prints itself when a counter-example is shown. */
function named<A extends object>(kind: string, args: A, run: (ledger: Ledger, now: number, args: A) => Promise<unknown>): RandomOperation {
  const operation: RandomOperation = (ledger, now) => run(ledger, now, args);
  return Object.assign(operation, { [fc.toStringMethod]: () => `${kind}(${fc.stringify(args)})` });
}

/** Price ids are made by whoever sets up the price book. */
export function commands(prices: readonly [string, string]): fc.Arbitrary<readonly Command[]> {
  const lock = fc
    .record({
      id: lockId,
      account,
      amount,
      prices: fc.constantFrom([prices[0]], [...prices]),
      ttlMs: fc.integer({ min: 0, max: 50 }),
      budget: fc.option(fc.record({ id: fc.constantFrom(...BUDGETS), limit: fc.bigInt({ min: 0n, max: 300n }) }), { nil: undefined }),
      detail: text,
    })
    .map((args) =>
      named('lock', args, (ledger, now, { ttlMs, budget, ...rest }) =>
        ledger.lock({ ...rest, expiresAt: now + ttlMs, ...(budget ? { budget } : {}) }),
      ),
    );
  const settle = fc
    .record({
      id: lockId,
      price: fc.constantFrom(...prices),
      provider: fc.constantFrom(...PROVIDERS),
      charge: amount,
      draw: fc.boolean(),
      feeBps: fc.constantFrom(0, 1, 250, 10_000),
      detail: text,
    })
    .map((args) => named('settle', args, (ledger, _, request) => ledger.settle({ ...request, usage: `{"call":${request.charge}}` })));
  const release = fc.record({ id: lockId, detail: text }).map((args) => named('release', args, (ledger, _, request) => ledger.release(request)));
  const transfer = fc
    .record({
      id: transferId,
      from: fc.constantFrom('treasury:x', 'treasury:x', 'treasury:x', 'escrow:alice', 'earnings:p1', 'suspense'),
      to: fc.constantFrom('escrow:alice', 'escrow:bob', 'treasury:y', 'suspense'),
      amount: fc.bigInt({ min: 1n, max: 400n }),
      memo: text,
    })
    .filter(({ from, to }) => from !== (to as string))
    .map((args) => named('transfer', args, (ledger, _, request) => ledger.transfer(request)));
  const operation = fc.oneof(
    { weight: 5, arbitrary: lock },
    { weight: 4, arbitrary: settle },
    { weight: 2, arbitrary: release },
    { weight: 3, arbitrary: transfer },
  );
  const command: fc.Arbitrary<Command> = fc.oneof(
    { weight: 8, arbitrary: fc.array(operation, { minLength: 1, maxLength: 12 }).map((operations) => ({ do: 'together' as const, operations })) },
    { weight: 1, arbitrary: fc.integer({ min: 1, max: 5 }).map((limit) => ({ do: 'expire' as const, limit })) },
    { weight: 1, arbitrary: fc.integer({ min: 1, max: 40 }).map((ms) => ({ do: 'wait' as const, ms })) },
  );
  return fc.array(command, { minLength: 1, maxLength: 14 });
}
