import fc from 'fast-check';
import type { Budget, Ledger } from '#billing';
import type { Rates } from '#billing/amounts';

/**
 * Commands with few different names, so that they affect each other. The operations of one step are submitted together.
 */
export type Command =
  | { readonly do: 'together'; readonly operations: readonly RandomOperation[] }
  | { readonly do: 'expire'; readonly limit: number; readonly spare: 'kept' | undefined }
  | { readonly do: 'wait'; readonly ms: number };

export type RandomOperation = (ledger: Ledger, now: number) => Promise<unknown>;

/** One micro-USD per call, so that `usage` can express any charge. */
export const RATES: Rates = { call: 1_000_000n };
export const PROVIDERS = ['p1', 'p2'] as const;
export const BUDGETS = ['budget-1', 'budget-2'] as const;

const lockName = (n: number) => `lock-${n}`;
const amount = fc.oneof(fc.constantFrom(0n, 1n, 100n), fc.bigInt({ min: 0n, max: 150n }));
const few = fc.bigInt({ min: 0n, max: 30n });
/** No budget, one or both. */
const budgetsOf = (limit: fc.Arbitrary<bigint>): fc.Arbitrary<readonly Budget[]> =>
  fc.uniqueArray(
    fc.record(
      { id: fc.constantFrom(...BUDGETS), limit, carried: fc.record({ spent: few, locked: few }) },
      { requiredKeys: ['id', 'limit'] },
    ),
    { selector: ({ id }) => id, maxLength: 2 },
  );
/** Quarters of the locked amount. */
const lendablePart = fc.bigInt({ min: 0n, max: 4n });
const text = fc.constantFrom('{}', '{"a":"b\\"c\\\\d"}', '{"text":"ä 😀 \' , {} NULL"}', '');

/** Adds a text form to an operation, for counter-examples. */
function named<A extends object>(
  kind: string,
  args: A,
  run: (ledger: Ledger, now: number, args: A) => Promise<unknown>,
): RandomOperation {
  const operation: RandomOperation = (ledger, now) => run(ledger, now, args);
  return Object.assign(operation, { [fc.toStringMethod]: () => `${kind}(${fc.stringify(args)})` });
}

interface LockArgs {
  readonly id: string;
  readonly account: string;
  readonly amount: bigint;
  readonly prices: readonly string[];
  readonly parent: string | undefined;
  readonly quarters: bigint;
  readonly ttlMs: number;
  readonly budgets: readonly Budget[];
  readonly detail: string;
}

const lockOperation = (args: LockArgs): RandomOperation =>
  named('lock', args, (ledger, now, { ttlMs, quarters, parent, ...rest }) =>
    ledger.lock({
      ...rest,
      lendable: (rest.amount * quarters) / 4n,
      expiresAt: now + ttlMs,
      ...(parent === undefined ? {} : { parent }),
    }),
  );

type Prices = readonly [string, string];

/** Operations that resolve or keep locks with these ids. */
function endings(prices: Prices, lockId: fc.Arbitrary<string>) {
  const keep = fc
    .record({ id: lockId, ttlMs: fc.integer({ min: -10, max: 60 }) })
    .map((args) => named('keep', args, (ledger, now, { id, ttlMs }) => ledger.keep(id, now + ttlMs)));
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
    .map((args) =>
      named('settle', args, (ledger, _, request) => ledger.settle({ ...request, usage: `{"call":${request.charge}}` })),
    );
  const release = fc
    .record({ id: lockId, detail: text })
    .map((args) => named('release', args, (ledger, _, request) => ledger.release(request)));
  return { keep, settle, release };
}

const expire: fc.Arbitrary<Command> = fc
  .record({ limit: fc.integer({ min: 1, max: 5 }), spare: fc.constantFrom('kept' as const, undefined) })
  .map(({ limit, spare }) => ({ do: 'expire' as const, limit, spare }));
const wait: fc.Arbitrary<Command> = fc.integer({ min: 1, max: 40 }).map((ms) => ({ do: 'wait' as const, ms }));
const together = (operation: fc.Arbitrary<RandomOperation>): fc.Arbitrary<Command> =>
  fc.array(operation, { minLength: 1, maxLength: 12 }).map((operations) => ({ do: 'together' as const, operations }));

/**
 * Arbitrary commands, many of which are refused. The price ids come from the caller, who sets up the price book.
 * `limitMax`: of the limits of budgets.
 */
export function commands(prices: Prices, limitMax = 300n): fc.Arbitrary<readonly Command[]> {
  const lockId = fc.integer({ min: 0, max: 11 }).map(lockName);
  const lock = fc
    .record({
      id: lockId,
      account: fc.constantFrom('alice', 'bob', 'nobody'),
      amount,
      prices: fc.constantFrom([prices[0]], [...prices]),
      parent: fc.option(lockId, { nil: undefined, freq: 2 }),
      quarters: fc.oneof(fc.constant(0n), lendablePart),
      ttlMs: fc.integer({ min: 0, max: 50 }),
      budgets: budgetsOf(fc.oneof(fc.constant(limitMax), fc.bigInt({ min: 0n, max: limitMax }))),
      detail: text,
    })
    .map(lockOperation);
  const transfer = fc
    .record({
      id: fc.integer({ min: 0, max: 15 }).map((n) => `transfer-${n}`),
      from: fc.constantFrom('treasury:x', 'treasury:x', 'treasury:x', 'escrow:alice', 'earnings:p1', 'suspense'),
      to: fc.constantFrom('escrow:alice', 'escrow:bob', 'treasury:y', 'suspense'),
      amount: fc.bigInt({ min: 1n, max: 400n }),
      memo: text,
    })
    .filter(({ from, to }) => from !== (to as string))
    .map((args) => named('transfer', args, (ledger, _, request) => ledger.transfer(request)));
  const { keep, settle, release } = endings(prices, lockId);
  const operation = fc.oneof(
    { weight: 5, arbitrary: lock },
    { weight: 4, arbitrary: settle },
    { weight: 2, arbitrary: release },
    { weight: 1, arbitrary: keep },
    { weight: 3, arbitrary: transfer },
  );
  const command = fc.oneof(
    { weight: 8, arbitrary: together(operation) },
    { weight: 1, arbitrary: expire },
    { weight: 1, arbitrary: wait },
  );
  return fc.array(command, { minLength: 1, maxLength: 14 });
}

const ROOTS = 3;
const TREE_LOCKS = 24;

/** Trees of locks that mostly succeed: roots of funded accounts, and locks under locks with lower numbers. */
export function treeCommands(prices: Prices, limitMax = 900n): fc.Arbitrary<readonly Command[]> {
  const fund = ['alice', 'bob'].map((account) =>
    named('fund', { account }, (ledger) =>
      ledger.transfer({ id: `fund-${account}`, from: 'treasury:x', to: `escrow:${account}`, amount: 1_000n, memo: '' }),
    ),
  );
  const lock = fc
    .record({
      number: fc.integer({ min: 0, max: TREE_LOCKS - 1 }),
      above: fc.nat(),
      account: fc.constantFrom('alice', 'alice', 'alice', 'alice', 'bob'),
      share: fc.bigInt({ min: 0n, max: 60n }),
      quarters: fc.oneof(fc.constantFrom(3n, 4n), lendablePart),
      ttlMs: fc.integer({ min: 10, max: 90 }),
      budgets: budgetsOf(fc.constantFrom(150n, limitMax)),
      detail: text,
    })
    .map(({ number, above, share, ...rest }) => {
      const isRoot = number < ROOTS;
      const parent = isRoot ? undefined : lockName(above % Math.min(number, 2 * ROOTS));
      return lockOperation({ ...rest, id: lockName(number), parent, amount: isRoot ? 100n + share : share, prices });
    });
  const { keep, settle, release } = endings(prices, fc.integer({ min: 0, max: TREE_LOCKS - 1 }).map(lockName));
  const operation = fc.oneof(
    { weight: 10, arbitrary: lock },
    { weight: 4, arbitrary: settle },
    { weight: 2, arbitrary: release },
    { weight: 1, arbitrary: keep },
  );
  const command = fc.oneof(
    { weight: 8, arbitrary: together(operation) },
    { weight: 1, arbitrary: expire },
    { weight: 1, arbitrary: wait },
  );
  return fc
    .array(command, { minLength: 2, maxLength: 16, size: 'max' })
    .map((steps) => [{ do: 'together' as const, operations: fund }, ...steps]);
}
