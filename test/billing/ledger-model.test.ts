import fc from 'fast-check';
import { afterAll, describe, expect, test } from 'vitest';
import { audit, createLedger, createPriceBook } from '#billing/compose';
import { priceId, type Ledger } from '#billing';
import { adHoc } from '../support/ad-hoc.ts';
import { ENGINES, openEngine, type OpenedEngine } from '../support/engines.ts';
import { BUDGETS, commands, PROVIDERS, RATES, treeCommands, type Command } from '../support/ledger-commands.ts';
import { createOracleLedger, type OracleLedger } from '../support/oracle-ledger.ts';

const RUNS = process.env['TOLLGATE_DEEP'] === '1' ? 2_000 : 25;
const PRICES = PROVIDERS.map((provider) => ({
  id: priceId(provider, 'chat', RATES),
  provider,
  service: 'chat',
  rates: RATES,
}));
const PRICE_IDS = [PRICES[0]!.id, PRICES[1]!.id] as const;
const TABLES = ['accounts', 'account_stripes', 'budgets', 'locks', 'transfers', 'journal', 'journal_batches'];
const WIPE = TABLES.map((table) => ({ statement: adHoc(`DELETE FROM ${table}`) }));

describe.each(ENGINES)('%s', (name) => {
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
        const ledger = await createLedger({ database, now: () => now });
        for (const step of steps) {
          if (step.do === 'wait') now += step.ms;
          expect(await perform(ledger, step, now)).toEqual(await perform(oracle, step, now));
        }
        oracle.check();
        await compare(ledger, oracle);
        const report = await audit(database, { overdueMs: null });
        expect(report.checks.filter(({ ok }) => !ok)).toEqual([]);
        await ledger.close();
      }),
      { numRuns: RUNS, ...(process.env['FC_SEED'] ? { seed: Number(process.env['FC_SEED']) } : {}) },
    );
  });
});

async function perform(ledger: Ledger, step: Command, now: number): Promise<unknown> {
  if (step.do === 'wait') return null;
  if (step.do === 'expire') return ledger.expire(now, step.limit, step.spare);
  return Promise.all(step.operations.map((operation) => operation(ledger, now)));
}

async function compare(ledger: Ledger, oracle: OracleLedger): Promise<void> {
  for (const account of [...oracle.accounts(), 'escrow:nobody', 'earnings:p2', 'fees'])
    expect({ account, ...(await ledger.balance(account)) }).toEqual({ account, ...(await oracle.balance(account)) });
  for (const id of [...oracle.locks(), 'unknown']) expect(await ledger.find(id)).toEqual(await oracle.find(id));
  for (const id of [...oracle.locks(), 'unknown']) expect(await ledger.children(id)).toEqual(await oracle.children(id));
  for (const id of BUDGETS) expect(await ledger.budget(id)).toEqual(await oracle.budget(id));
}
