import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { audit, createLedger, type Ledger } from '#billing';
import { ENGINES, openEngine, type OpenedEngine } from '../support/engines.ts';
import { raceLocks } from '../support/overspend-race.ts';

const ATTEMPTS = process.env['TOLLGATE_DEEP'] === '1' ? 1_000_000 : 10_000;
const GATEWAYS = 3;

describe.each(ENGINES)('%s', (name) => {
  let engine: OpenedEngine;
  const ledgers: Ledger[] = [];
  beforeAll(async () => {
    engine = await openEngine(name);
    ledgers.push(await createLedger({ database: engine.database }));
    // The embedded database has one opener: there, the gateways are one.
    for (let more = 1; name === 'postgres' && more < GATEWAYS; more += 1) ledgers.push(await createLedger({ database: await engine.again() }));
  });
  afterAll(async () => {
    await Promise.all(ledgers.map((ledger) => ledger.close()));
    await engine.dispose();
  });

  test('an account that can pay 1,000 locks gets exactly 1,000, however many race for them', async () => {
    const race = await raceLocks(ledgers, { width: 64, attempts: ATTEMPTS, affordable: 1_000 });
    expect(race).toEqual({ granted: 1_000, refused: ATTEMPTS - 1_000, failed: 0, available: 0n, locked: 10_000n });
    expect(await audit(engine.database)).toMatchObject({ ok: true });
  });
});
