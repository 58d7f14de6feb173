import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { audit, createLedger, createPriceBook } from '#billing/compose';
import type { Ledger, LockRecord } from '#billing';
import { priceId } from '#billing/amounts';
import { adHoc } from '../support/ad-hoc.ts';
import { BOTH_ENGINES, openEngine, type OpenedEngine } from '../support/engines.ts';
import { FLUSH_MODES, lateEnds } from '../support/flush-modes.ts';
import { BUDGETS, commands, PROVIDERS, RATES, treeCommands, type Command } from '../support/ledger-commands.ts';
import { createOracleLedger, type OracleLedger } from '../support/oracle-ledger.ts';

const RUNS = process.env['TOLLGATE_DEEP'] === '1' ? 2_000 : 8;
const PRICES = PROVIDERS.map((provider) => ({
  id: priceId(provider, 'chat', RATES),
  provider,
  service: 'chat',
  rates: RATES,
}));
const PRICE_IDS = [PRICES[0]!.id, PRICES[1]!.id] as const;
const TABLES = [
  'accounts',
  'account_stripes',
  'budgets',
  'budget_stripes',
  'locks',
  'transfers',
  'journal',
  'journal_batches',
];
const LEASED = adHoc(
  'SELECT (SELECT count(*) FROM locks WHERE stripe IS NOT NULL) + (SELECT count(*) FROM budget_stripes) AS leased',
);
const CHAINS = adHoc('SELECT count(DISTINCT chain) AS chains FROM journal_batches');
const WIPE = TABLES.map((table) => ({ statement: adHoc(`DELETE FROM ${table}`) }));

describe.each(BOTH_ENGINES.flatMap((name) => FLUSH_MODES.map(([mode, flushMs]) => [name, mode, flushMs] as const)))(
  '%s, %s',
  (name, _mode, flushMs) => {
    let engine: OpenedEngine | undefined;
    afterAll(() => engine?.dispose());

    /** A database without rows: of PostgreSQL always the same one. */
    const emptyEngine = async (): Promise<OpenedEngine> => {
      if (name === 'postgres' && engine) {
        await engine.database.batch(WIPE);
        return engine;
      }
      await engine?.dispose();
      engine = await openEngine(name);
      await createPriceBook(engine.database).remember(PRICES);
      return engine;
    };

    test.each([
      ['commands', commands],
      ['trees of locks', treeCommands],
    ])('decides random %s as the oracle does, and its books are in order', async (_, random) => {
      await fc.assert(
        fc.asyncProperty(random([...PRICE_IDS]), async (steps) => {
          const { database } = await emptyEngine();
          let now = 1_000;
          const oracle = createOracleLedger(() => now);
          const ledger = lateEnds(await createLedger({ database, now: () => now, inOrder: true, flushMs }));
          for (const step of steps) {
            if (step.do === 'wait') now += step.ms;
            expect(await perform(ledger, step, now)).toEqual(await perform(oracle, step, now));
          }
          oracle.check();
          await compare(ledger, oracle, flushMs !== null);
          const report = await audit(database, { overdueMs: null });
          expect(report.checks.filter(({ ok }) => !ok)).toEqual([]);
          await ledger.close();
        }),
        { numRuns: RUNS, ...(process.env['FC_SEED'] ? { seed: Number(process.env['FC_SEED']) } : {}) },
      );
    });
  },
);

/*
 * Money that several gateways spend moves between their leases. Whatever gateway is asked, it must decide as if there
 * were one.
 */
describe.each(BOTH_ENGINES.filter((name) => name === 'postgres'))('three gateways of %s', (name) => {
  let engine: OpenedEngine;
  beforeAll(async () => {
    engine = await openEngine(name);
    await createPriceBook(engine.database).remember(PRICES);
  });
  afterAll(() => engine.dispose());

  test.each([
    ['commands', commands, true],
    ['trees of locks', treeCommands, true],
    // Accounts that lack money have groups of their own then, which are decided in another order than they came.
    ['commands one by one', commands, false],
    ['trees of locks one by one', treeCommands, false],
  ])('decide random %s as the oracle does, with leases', async (_, random, inOrder) => {
    const databases = [engine.database, await engine.again(), await engine.again()];
    let leased = 0;
    /** Runs in which an account had groups of its own. */
    let aside = 0;
    const scenario = fc.tuple(
      fc.oneof(fc.constantFrom(1_000n, 5_000n, 20_000n), fc.bigInt({ min: 1n, max: 20_000n })),
      random([...PRICE_IDS], 4_000n),
      fc.array(fc.nat(2), { minLength: 1, maxLength: 20 }),
    );
    await fc.assert(
      fc.asyncProperty(scenario, async ([funds, steps, turns]) => {
        await engine.database.batch(WIPE);
        let now = 1_000;
        const oracle = createOracleLedger(() => now);
        const ledgers = await Promise.all(
          databases.map((database) => createLedger({ database, now: () => now, inOrder })),
        );
        try {
          for (const account of ['alice', 'bob']) {
            const first = { from: 'treasury:x', to: `escrow:${account}`, amount: funds, memo: '' };
            for (const ledger of [oracle, ledgers[0]!]) await ledger.transfer({ ...first, id: `first-${account}` });
            // All gateways use the account in turns, so it counts as shared.
            for (let turn = 0; turn < 3 * ledgers.length; turn += 1)
              for (const ledger of [oracle, ledgers[turn % ledgers.length]!]) await useOnce(ledger, account, turn);
          }
          // Each gateway has met an account that lacks money.
          if (!inOrder)
            for (const [at, ledger] of ledgers.entries())
              expect(await askTooMuch(ledger, `too-much-${at}`)).toEqual(await askTooMuch(oracle, `too-much-${at}`));
          for (const [index, step] of steps.entries()) {
            if (step.do === 'wait') now += step.ms;
            const ledger = ledgers[turns[index % turns.length]!]!;
            const one = inOrder ? perform : performOneByOne;
            expect(await one(roundly(ledger), step, now)).toEqual(await one(roundly(oracle), step, now));
          }
          oracle.check();
          const [row] = await engine.database.query(LEASED, []);
          leased += Number(row!['leased']);
          const [{ chains }] = (await engine.database.query(CHAINS, [])) as [{ readonly chains: unknown }];
          if (Number(chains) > ledgers.length) aside += 1;
          for (const ledger of ledgers) await compare(ledger, oracle);
          const report = await audit(engine.database, { overdueMs: null });
          expect(report.checks.filter(({ ok }) => !ok)).toEqual([]);
        } finally {
          await Promise.all(ledgers.map((ledger) => ledger.close()));
        }
      }),
      // To make a failure small takes longer than the test may: its seed and path say how to see it again.
      {
        numRuns: RUNS,
        endOnFailure: true,
        ...(process.env['FC_SEED'] ? { seed: Number(process.env['FC_SEED']) } : {}),
      },
    );
    // Else the test would show nothing.
    expect(leased).toBeGreaterThan(RUNS / 4);
    if (!inOrder) expect(aside).toBeGreaterThan(RUNS / 4);
  });
});

async function perform(ledger: Ledger, step: Command, now: number): Promise<unknown> {
  if (step.do === 'wait') return null;
  if (step.do === 'expire') return ledger.expire(now, step.limit, step.spare);
  return Promise.all(step.operations.map((operation) => operation(ledger, now)));
}

async function performOneByOne(ledger: Ledger, step: Command, now: number): Promise<unknown> {
  if (!('operations' in step)) return perform(ledger, step, now);
  const results: unknown[] = [];
  for (const operation of step.operations) results.push(await operation(ledger, now));
  return results;
}

/** A call that costs 1 micro-USD, so that the balance changes. */
async function useOnce(ledger: Ledger, account: string, turn: number): Promise<void> {
  const id = `${account}-${turn}`;
  await ledger.lock({ id, account, amount: 1n, prices: PRICE_IDS, expiresAt: 1_000, detail: '{}' });
  const settlement = { price: PRICE_IDS[0], provider: 'p1', charge: 1n, draw: false, feeBps: 0, usage: '{"call":1}' };
  await ledger.settle({ ...settlement, id, detail: '{}' });
}

const askTooMuch = (ledger: Ledger, id: string) =>
  ledger.lock({ id, account: 'alice', amount: 10n ** 12n, prices: PRICE_IDS, expiresAt: 1_000, detail: '{}' });

/** The ledger without balances that are only a gateway's part: those after locks, unless money was missing. */
const roundly = (ledger: Ledger): Ledger => ({
  ...ledger,
  async lock(request) {
    const result = await ledger.lock(request);
    const isPart = result.ok || result.reason === 'duplicate';
    return isPart ? { ...result, available: 0n } : result;
  },
});

/** `isLate`: a call may end later in the books than its end was answered, with the record that it is in. */
async function compare(ledger: Ledger, oracle: OracleLedger, isLate = false): Promise<void> {
  for (const account of [...oracle.accounts(), 'escrow:nobody', 'earnings:p2', 'fees'])
    expect({ account, ...(await ledger.balance(account)) }).toEqual({ account, ...(await oracle.balance(account)) });
  const expectSame = (found: LockRecord | null, expected: LockRecord | null) => {
    const [end, expectedEnd] = [found?.resolvedAt ?? null, expected?.resolvedAt ?? null];
    if (!isLate || end === null || expectedEnd === null) return expect(found).toEqual(expected);
    expect(found).toEqual({ ...expected, resolvedAt: end });
    expect(end).toBeGreaterThanOrEqual(expectedEnd);
  };
  for (const id of [...oracle.locks(), 'unknown']) {
    expectSame(await ledger.find(id), await oracle.find(id));
    const [found, expected] = [await ledger.children(id), await oracle.children(id)];
    expect(found).toHaveLength(expected.length);
    for (const [at, child] of found.entries()) expectSame(child, expected[at]!);
  }
  for (const id of BUDGETS) expect(await ledger.budget(id)).toEqual(await oracle.budget(id));
}
