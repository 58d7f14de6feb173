import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { audit, createLedger, createPriceBook, type createLedger as CreateLedger } from '#billing/compose';
import { escrowOf, treasuryOf } from '#billing';
import type { ReturnEntry } from '../../src/billing/ledger/ledger-log-rows.ts';
import type { LockRequest } from '../../src/billing/ledger/ledger.ts';
import { adHoc } from '../support/ad-hoc.ts';
import { CRASH_PRICE } from '../support/crash-price.ts';
import { editRows, tamper, type LogEdit } from '../support/edited-log.ts';
import { ENGINES, openEngine, type OpenedEngine } from '../support/engines.ts';
import { createMutant } from '../support/mutant.ts';

/** Changes what the log has of the settled child's giving back. */
const editReturn = (change: (row: ReturnEntry) => readonly ReturnEntry[]) =>
  editRows((row) => (row[0] === 'return' && row[1] === 'settled' ? change(row) : [row]));

/**
 * What somebody with access to the database might do to locks that draw on each other, and the checks that must tell.
 */
const TAMPERINGS: readonly {
  what: string;
  statements: readonly string[];
  log?: LogEdit;
  checks: readonly string[];
}[] = [
  {
    what: 'a run has lent less than it did, so that it could lend it again',
    statements: ["UPDATE locks SET lent = lent - 10 WHERE id = 'run'"],
    checks: ['held locks', 'lent', 'budgets'],
  },
  {
    what: 'a run has lent more',
    statements: ["UPDATE locks SET lent = lent + 10 WHERE id = 'run'"],
    checks: ['held locks', 'lent', 'budgets'],
  },
  {
    what: 'a run that has ended has lent less',
    statements: ["UPDATE locks SET lent = lent - 10 WHERE id = 'ended'"],
    checks: ['lock history', 'lent'],
  },
  {
    what: 'what a child gave back is dropped from the journal',
    statements: ["DELETE FROM journal WHERE kind = 'return' AND id = 'settled'"],
    log: editReturn(() => []),
    checks: ['balances', 'lent', 'locks under locks', 'hash chains'],
  },
  {
    what: 'a child gave back less',
    statements: ["UPDATE journal SET amount = amount - 1 WHERE kind = 'return' AND id = 'settled'"],
    log: editReturn(([kind, id, account, amount, parent]) => [[kind, id, account, `${BigInt(amount) - 1n}`, parent]]),
    checks: ['balances', 'lent', 'locks under locks', 'hash chains'],
  },
  {
    what: 'a child gave back twice',
    statements: [
      "INSERT INTO journal SELECT chain, batch, position + 100, kind, id, account, counterparty, amount, charged, fee, drawn, price, at FROM journal WHERE kind = 'return' AND id = 'settled'",
    ],
    log: editReturn((row) => [row, row]),
    checks: ['balances', 'lent', 'locks under locks', 'hash chains'],
  },
  {
    what: 'a child gave back to another lock',
    statements: ["UPDATE journal SET counterparty = 'ended' WHERE kind = 'return' AND id = 'settled'"],
    log: editReturn(([kind, id, account, amount]) => [[kind, id, account, amount, 'ended']]),
    checks: ['lent', 'locks under locks', 'hash chains'],
  },
  {
    what: 'what a child drew is dropped from the journal',
    statements: ["DELETE FROM journal WHERE kind = 'lend' AND id = 'held'"],
    log: editRows((row) => {
      if (row[0] !== 'lock' || row[1] !== 'held') return [row];
      const [kind, id, account, amount, prices, budget, expiresAt, detail] = row;
      return [[kind, id, account, amount, prices, budget, expiresAt, detail]];
    }),
    checks: ['balances', 'locks under locks', 'hash chains'],
  },
  {
    what: 'a child is said to be on its own',
    statements: ["UPDATE locks SET parent = NULL, depth = 0 WHERE id = 'held'"],
    checks: ['lent', 'locks under locks'],
  },
  {
    what: 'a child is put under another lock',
    statements: ["UPDATE locks SET parent = 'ended' WHERE id = 'held'"],
    checks: ['lent', 'locks under locks'],
  },
  {
    what: 'a child is put under no lock',
    statements: ["UPDATE locks SET parent = 'nothing' WHERE id = 'held'"],
    checks: ['lent', 'locks under locks'],
  },
  {
    what: 'a child is given to another account',
    statements: ["UPDATE locks SET account = 'b' WHERE id = 'held'"],
    checks: ['held locks', 'lock history', 'locks under locks'],
  },
  {
    what: 'a child is less deep',
    statements: ["UPDATE locks SET depth = 0 WHERE id = 'leaf'"],
    checks: ['locks under locks'],
  },
  {
    what: 'a child has a budget of its own',
    statements: ["UPDATE locks SET budget = NULL WHERE id = 'leaf'"],
    checks: ['locks under locks', 'budgets'],
  },
];

type Make = typeof CreateLedger;

/** A run and its children in every state, and one that has ended before its child. */
async function fill(engine: OpenedEngine, make: Make): Promise<void> {
  await createPriceBook(engine.database).remember([CRASH_PRICE]);
  const ledger = await make({ database: engine.database, now: () => 1_000 });
  await ledger.transfer({ id: 'fund', from: treasuryOf('test'), to: escrowOf('a'), amount: 1_000n, memo: '' });
  const lock = (id: string, changes: Partial<LockRequest>) =>
    ledger.lock({
      id,
      account: 'a',
      amount: 100n,
      prices: [CRASH_PRICE.id],
      expiresAt: 5_000,
      detail: '{}',
      ...changes,
    });
  const settle = (id: string, charge: bigint) =>
    ledger.settle({
      id,
      charge,
      price: CRASH_PRICE.id,
      provider: 'p',
      draw: false,
      feeBps: 500,
      usage: `{"call":${charge}}`,
      detail: '{}',
    });
  const budget = { id: 'b', limit: 1_000n };
  await lock('run', { amount: 500n, lendable: 450n, budgets: [budget] });
  await lock('settled', { parent: 'run' });
  await lock('released', { parent: 'run' });
  await lock('held', { parent: 'run', lendable: 50n });
  await lock('leaf', { parent: 'held', amount: 30n });
  await lock('ended', { amount: 200n, lendable: 150n });
  await lock('late', { parent: 'ended' });
  await settle('settled', 60n);
  await ledger.release({ id: 'released', detail: '{}' });
  await settle('ended', 20n);
  await settle('late', 40n);
  await ledger.close();
}

describe.each(ENGINES)('%s', (name) => {
  let engine: OpenedEngine;
  beforeEach(async () => {
    engine = await openEngine(name);
    await fill(engine, createLedger);
  });
  afterEach(() => engine.dispose());

  const failing = async (of: OpenedEngine = engine) =>
    (await audit(of.database, { overdueMs: null })).checks.filter(({ ok }) => !ok).map((check) => check.name);

  test('books in order pass', async () => {
    expect(await failing()).toEqual([]);
    const { totals } = await audit(engine.database, { overdueMs: null });
    expect(totals).toMatchObject({ escrowAvailable: 440n, escrowLocked: 440n, charged: 120n, locksHeld: 3 });
  });

  test.each(TAMPERINGS)('$what: $checks', async ({ checks, ...tampering }) => {
    await tamper(engine, tampering);
    expect(await failing()).toEqual(checks);
  });

  test('a ledger that forgets to give back to the parent is found out, although its books balance', async () => {
    const mutant = createMutant([
      {
        file: 'src/billing/ledger/ledger-decide.ts',
        find: "if (parent?.state !== 'held' || rest === 0n) return;",
        put: 'if (parent) return;',
      },
    ]);
    try {
      const { createLedger: make } = (await import(mutant.url('src/billing/compose.ts'))) as { createLedger: Make };
      const store = (await import(mutant.url('src/foundation/store/index.ts'))) as typeof import('#store');
      const other = await openEngine(name, store.openDatabase);
      await fill(other, make);
      expect(await failing(other)).toEqual(['locks under locks']);
      await other.dispose();
    } finally {
      mutant.dispose();
    }
  });

  test.each([
    ['more lent than lendable', "UPDATE locks SET lent = lendable + 1 WHERE id = 'run'"],
    ['less lent than nothing', "UPDATE locks SET lent = -1 WHERE id = 'run'"],
    ['more lendable than locked', "UPDATE locks SET lendable = amount + 1 WHERE id = 'run'"],
    ['a charge of what was lendable', "UPDATE locks SET charged = 51 WHERE id = 'ended'"],
    ['kept as anything but a flag', "UPDATE locks SET kept = 2 WHERE id = 'run'"],
  ])('the database itself refuses %s', async (_, text) => {
    await expect(engine.database.query(adHoc(text))).rejects.toMatchObject({ code: 'check_violation' });
  });

  test('what the database would have refused is told', async () => {
    const other = await openEngine(name);
    await fill(other, createLedger);
    const unguarded =
      name === 'sqlite'
        ? ['PRAGMA ignore_check_constraints = ON']
        : ['ALTER TABLE locks DROP CONSTRAINT locks_lendable'];
    for (const text of unguarded) await other.database.query(adHoc(text));
    await other.database.query(adHoc("UPDATE locks SET lendable = amount - charged + 1 WHERE id = 'ended'"));
    expect(await failing(other)).toEqual(['lent']);
    await other.dispose();
  });
});
