import { afterEach, describe, expect, test } from 'vitest';
import type { createLedger as CreateLedger } from '#billing/compose';
import type { Ledger } from '#billing';
import { openEngine, type EngineName } from '../support/engines.ts';
import { GUARDS } from '../support/ledger-guards.ts';
import { createMutant, type Mutant, type Mutation } from '../support/mutant.ts';
import { raceChildren, raceForLeases, raceLocks, type Race, type RaceOptions } from '../support/lock-race.ts';

/* The race of ledger-races.test.ts must fail without the guards, else it shows nothing. */
const AFFORDABLE = 300;
const ATTEMPTS = 1_500;

const mutants: Mutant[] = [];
afterEach(() => mutants.splice(0).forEach((mutant) => mutant.dispose()));

const raceForBudget = (ledgers: readonly Ledger[], options: RaceOptions) => raceForLeases(ledgers, options, 'budget');

const race = (engineName: EngineName, mutations: readonly Mutation[]): Promise<Race> =>
  raceBy(raceLocks, engineName, mutations);

async function raceBy<T>(
  by: (...args: Parameters<typeof raceLocks>) => Promise<T>,
  engineName: EngineName,
  mutations: readonly Mutation[],
  { affordable, attempts } = { affordable: AFFORDABLE, attempts: ATTEMPTS },
): Promise<T> {
  const mutant = createMutant(mutations);
  mutants.push(mutant);
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

/** Without a guard a race is lost by chance, on a busy machine not always the first time. */
async function lostRace<T extends { readonly granted: number }>(
  run: () => Promise<T>,
  affordable = AFFORDABLE,
): Promise<T> {
  for (let round = 1; ; round += 1) {
    const result = await run();
    if (result.granted > affordable || round === 5) return result;
  }
}

describe('the race is lost without', () => {
  test('the comparison and the CHECK (sqlite)', async () => {
    const { granted, available } = await race('sqlite', [GUARDS.comparison, GUARDS.check, GUARDS.embeddedCheck]);
    expect(granted).toBe(ATTEMPTS);
    expect(available).toBeLessThan(0n);
  });

  test('the comparison and the CHECK (postgres)', async () => {
    const { granted, available } = await race('postgres', [GUARDS.comparison, GUARDS.check]);
    expect(granted).toBe(ATTEMPTS);
    expect(available).toBeLessThan(0n);
  });

  test('the row locks and the CHECK (postgres)', async () => {
    const { granted, available } = await lostRace(() => race('postgres', [GUARDS.rowLocks, GUARDS.check]));
    expect(granted).toBeGreaterThan(AFFORDABLE);
    expect(available).toBeLessThan(0n);
  });

  test('the comparison of known rows and the CHECK (postgres)', async () => {
    const { granted, available } = await lostRace(() => race('postgres', [GUARDS.assumptions, GUARDS.check]));
    expect(granted).toBeGreaterThan(AFFORDABLE);
    expect(available).toBeLessThan(0n);
  });
});

describe('the CHECK alone refuses, with errors instead of refusals, without', () => {
  test('the comparison (sqlite)', async () => {
    expect(await race('sqlite', [GUARDS.comparison])).toMatchObject({
      granted: AFFORDABLE,
      refused: 0,
      failed: ATTEMPTS - AFFORDABLE,
      available: 0n,
    });
  });

  test('the row locks (postgres)', async () => {
    expect(await race('postgres', [GUARDS.rowLocks])).toMatchObject({ granted: AFFORDABLE, available: 0n });
  });

  test('the comparison of known rows (postgres)', async () => {
    expect(await race('postgres', [GUARDS.assumptions])).toMatchObject({ granted: AFFORDABLE, available: 0n });
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
    const { granted, available } = await lostRace(
      () => raceBy(raceForLeases, 'postgres', [GUARDS.leaseAssumptions, GUARDS.stripeCheck], many),
      many.affordable,
    );
    expect(granted).toBeGreaterThan(many.affordable);
    expect(available).toBeLessThan(0n);
  });

  test('is won by the CHECK alone', async () => {
    expect(await raceBy(raceForLeases, 'postgres', [GUARDS.leaseAssumptions], many)).toMatchObject({
      granted: many.affordable,
      available: 0n,
    });
  });

  test('of a budget is lost if the budget does not count leased room', async () => {
    const { granted } = await lostRace(
      () => raceBy(raceForBudget, 'postgres', [GUARDS.leasedRoom], many),
      many.affordable,
    );
    expect(granted).toBeGreaterThan(many.affordable);
  });
});

describe("the race for a parent's last micro-USD", () => {
  const lendable = 10n * BigInt(AFFORDABLE);

  test.each(['sqlite', 'postgres'] as const)('is lost without the comparison and the CHECK (%s)', async (engine) => {
    const { granted, lent } = await raceBy(raceChildren, engine, [
      GUARDS.lendingComparison,
      GUARDS.lendingCheck,
      GUARDS.embeddedLendingCheck,
    ]);
    expect(granted).toBe(ATTEMPTS);
    expect(lent).toBeGreaterThan(lendable);
  });

  test('is lost without the row locks of its account and the CHECK (postgres)', async () => {
    const { granted, lent } = await lostRace(() =>
      raceBy(raceChildren, 'postgres', [GUARDS.rowLocks, GUARDS.lendingCheck]),
    );
    expect(granted).toBeGreaterThan(AFFORDABLE);
    expect(lent).toBeGreaterThan(lendable);
  });

  test.each([
    ['sqlite', GUARDS.lendingComparison],
    ['postgres', GUARDS.rowLocks],
  ] as const)('is won by the CHECK alone (%s)', async (engine, mutation) => {
    expect(await raceBy(raceChildren, engine, [mutation])).toMatchObject({ granted: AFFORDABLE, lent: lendable });
  });
});
