import { afterEach, describe, expect, test } from 'vitest';
import type { createLedger as CreateLedger } from '#billing/compose';
import type { Ledger } from '#billing';
import { openEngine, type EngineName } from '../support/engines.ts';
import { createMutant, type Mutant, type Mutation } from '../support/mutant.ts';
import { raceChildren, raceForLeases, raceLocks, type Race, type RaceOptions } from '../support/lock-race.ts';

/*
 * The race of ledger-races.test.ts must fail without the guards, else it shows nothing. Three stand one behind the
 * other: the decision's comparison, the row locks that make it true, the CHECK in the database.
 */
const COMPARISON: Mutation = {
  file: 'src/billing/ledger/ledger-decide.ts',
  find: 'escrow.available < amount',
  put: 'false',
};
const ROW_LOCKS: Mutation = {
  file: 'src/billing/sql/ledger-postgres.sql',
  find: 'ANY ($2::text[]) AND stripe IS NULL))\nORDER BY id FOR UPDATE',
  put: 'ANY ($2::text[]) AND stripe IS NULL))\nORDER BY id',
};
/** Rows that this gateway knows are compared when a group that was decided on them is written. */
const ASSUMPTIONS: Mutation = {
  file: 'src/billing/ledger/ledger-postgres.ts',
  find: '[BEGIN, ...assumeSteps(state)]',
  put: '[BEGIN]',
};
/** Leases that this gateway knows are compared too, and another gateway that takes one back locks it. */
const LEASE_ASSUMPTIONS: Mutation = {
  file: 'src/billing/ledger/ledger-postgres-write.ts',
  find: '[...steps, accountStripes, budgetStripes]',
  put: '[...steps]',
};
const LEASED_ROOM: Mutation = {
  file: 'src/billing/ledger/ledger-decide.ts',
  find: 'spent + locked + leased + amount > budget.limit',
  put: 'spent + locked + amount > budget.limit',
};
const STRIPE_CHECK: Mutation = {
  file: 'src/foundation/store/migrations/0053_account-stripes.sql',
  find: 'CHECK (available >= 0)',
  put: 'CHECK (available IS NOT NULL)',
};
const CHECK: Mutation = {
  file: 'src/foundation/store/migrations/0001_ledger.sql',
  find: "CHECK (available >= 0 OR id LIKE 'treasury:%')",
  put: 'CHECK (available IS NOT NULL)',
};
/** On the embedded engine a decision is checked before it is written, as the tables follow later. */
const EMBEDDED_CHECK: Mutation = {
  file: 'src/billing/ledger/ledger-sqlite.ts',
  find: 'available >= 0n || mayBeNegative(id)',
  put: 'true',
};
const EMBEDDED_LENDING_CHECK: Mutation = {
  file: 'src/billing/ledger/ledger-sqlite.ts',
  find: 'lent > lendable',
  put: 'false',
};
const LENDING_COMPARISON: Mutation = {
  file: 'src/billing/ledger/ledger-decide.ts',
  find: 'left < amount',
  put: 'false',
};
const LENDING_CHECK: Mutation = {
  file: 'src/foundation/store/migrations/0009_runs.sql',
  find: 'CHECK (lent >= 0 AND lent <= lendable)',
  put: 'CHECK (lent >= 0)',
};

const AFFORDABLE = 300;
const ATTEMPTS = 1_500;

let mutant: Mutant | undefined;
afterEach(() => mutant?.dispose());

const raceForBudget = (ledgers: readonly Ledger[], options: RaceOptions) => raceForLeases(ledgers, options, 'budget');

const race = (engineName: EngineName, mutations: readonly Mutation[]): Promise<Race> =>
  raceBy(raceLocks, engineName, mutations);

async function raceBy<T>(
  by: (...args: Parameters<typeof raceLocks>) => Promise<T>,
  engineName: EngineName,
  mutations: readonly Mutation[],
  { affordable, attempts } = { affordable: AFFORDABLE, attempts: ATTEMPTS },
): Promise<T> {
  mutant = createMutant(mutations);
  const { createLedger } = (await import(mutant.url('src/billing/compose.ts'))) as {
    createLedger: typeof CreateLedger;
  };
  const store = (await import(mutant.url('src/foundation/store/index.ts'))) as typeof import('#store');
  const engine = await openEngine(engineName, store.openDatabase);
  const ledgers: Ledger[] = [await createLedger({ database: engine.database })];
  for (let more = 1; engineName === 'postgres' && more < 3; more += 1)
    ledgers.push(await createLedger({ database: await engine.again() }));
  try {
    return await by(ledgers, { width: 16, attempts, affordable });
  } finally {
    await Promise.all(ledgers.map((ledger) => ledger.close()));
    await engine.dispose();
  }
}

describe('the race is lost without', () => {
  test('the comparison and the CHECK (sqlite)', async () => {
    const { granted, available } = await race('sqlite', [COMPARISON, CHECK, EMBEDDED_CHECK]);
    expect(granted).toBe(ATTEMPTS);
    expect(available).toBeLessThan(0n);
  });

  test('the comparison and the CHECK (postgres)', async () => {
    const { granted, available } = await race('postgres', [COMPARISON, CHECK]);
    expect(granted).toBe(ATTEMPTS);
    expect(available).toBeLessThan(0n);
  });

  test('the row locks and the CHECK (postgres)', async () => {
    const { granted, available } = await race('postgres', [ROW_LOCKS, CHECK]);
    expect(granted).toBeGreaterThan(AFFORDABLE);
    expect(available).toBeLessThan(0n);
  });

  test('the comparison of known rows and the CHECK (postgres)', async () => {
    const { granted, available } = await race('postgres', [ASSUMPTIONS, CHECK]);
    expect(granted).toBeGreaterThan(AFFORDABLE);
    expect(available).toBeLessThan(0n);
  });
});

describe('the CHECK alone refuses, with errors instead of refusals, without', () => {
  test('the comparison (sqlite)', async () => {
    expect(await race('sqlite', [COMPARISON])).toMatchObject({
      granted: AFFORDABLE,
      refused: 0,
      failed: ATTEMPTS - AFFORDABLE,
      available: 0n,
    });
  });

  test('the row locks (postgres)', async () => {
    expect(await race('postgres', [ROW_LOCKS])).toMatchObject({ granted: AFFORDABLE, available: 0n });
  });

  test('the comparison of known rows (postgres)', async () => {
    expect(await race('postgres', [ASSUMPTIONS])).toMatchObject({ granted: AFFORDABLE, available: 0n });
  });
});

describe('a changed copy behaves like the original with', () => {
  test('nothing taken out', async () => {
    expect(await race('postgres', [])).toMatchObject({
      granted: AFFORDABLE,
      refused: ATTEMPTS - AFFORDABLE,
      failed: 0,
      available: 0n,
    });
  });
});

describe('the race for leases', () => {
  // Little money is not divided.
  const many = { affordable: 4_000, attempts: 6_000 };
  const all = { granted: many.affordable, refused: many.attempts - many.affordable, failed: 0 };

  test('is won with all guards', async () => {
    expect(await raceBy(raceForLeases, 'postgres', [], many)).toMatchObject({ ...all, available: 0n });
    expect(await raceBy(raceForBudget, 'postgres', [], many)).toMatchObject(all);
  });

  test('is lost without the comparison of known leases and the CHECK', async () => {
    const { granted, available } = await raceBy(raceForLeases, 'postgres', [LEASE_ASSUMPTIONS, STRIPE_CHECK], many);
    expect(granted).toBeGreaterThan(many.affordable);
    expect(available).toBeLessThan(0n);
  });

  test('is won by the CHECK alone', async () => {
    expect(await raceBy(raceForLeases, 'postgres', [LEASE_ASSUMPTIONS], many)).toMatchObject({
      granted: many.affordable,
      available: 0n,
    });
  });

  test('of a budget is lost if the budget does not count leased room', async () => {
    const { granted } = await raceBy(raceForBudget, 'postgres', [LEASED_ROOM], many);
    expect(granted).toBeGreaterThan(many.affordable);
  });
});

describe("the race for a parent's last micro-USD", () => {
  const lendable = 10n * BigInt(AFFORDABLE);

  test.each(['sqlite', 'postgres'] as const)('is lost without the comparison and the CHECK (%s)', async (engine) => {
    const { granted, lent } = await raceBy(raceChildren, engine, [
      LENDING_COMPARISON,
      LENDING_CHECK,
      EMBEDDED_LENDING_CHECK,
    ]);
    expect(granted).toBe(ATTEMPTS);
    expect(lent).toBeGreaterThan(lendable);
  });

  test('is lost without the row locks of its account and the CHECK (postgres)', async () => {
    const { granted, lent } = await raceBy(raceChildren, 'postgres', [ROW_LOCKS, LENDING_CHECK]);
    expect(granted).toBeGreaterThan(AFFORDABLE);
    expect(lent).toBeGreaterThan(lendable);
  });

  test.each([
    ['sqlite', LENDING_COMPARISON],
    ['postgres', ROW_LOCKS],
  ] as const)('is won by the CHECK alone (%s)', async (engine, mutation) => {
    expect(await raceBy(raceChildren, engine, [mutation])).toMatchObject({ granted: AFFORDABLE, lent: lendable });
  });
});
