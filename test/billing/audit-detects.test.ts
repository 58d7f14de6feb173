import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { audit, createLedger, createPriceBook } from '#billing/compose';
import { escrowOf, treasuryOf } from '#billing';
import { adHoc } from '../support/ad-hoc.ts';
import { CRASH_PRICE } from '../support/crash-price.ts';
import { editRows, tamper, type LogEdit } from '../support/edited-log.ts';
import { ENGINES, openEngine, type OpenedEngine } from '../support/engines.ts';

const sql = (text: string) => ({ statement: adHoc(text) });

/** What somebody with access to the database might do, and the checks that must tell. */
const TAMPERINGS: readonly {
  what: string;
  statements: readonly string[];
  log?: LogEdit;
  checks: readonly string[];
}[] = [
  {
    what: 'a balance is raised',
    statements: ["UPDATE accounts SET available = available + 5 WHERE id = 'escrow:a'"],
    checks: ['balances'],
  },
  {
    what: 'money is moved from one account to another',
    statements: [
      "UPDATE accounts SET available = available - 5 WHERE id = 'fees'",
      "UPDATE accounts SET available = available + 5 WHERE id = 'escrow:a'",
    ],
    checks: ['balances'],
  },
  {
    what: 'locked money is made available',
    statements: ["UPDATE accounts SET available = available + locked, locked = 0 WHERE id = 'escrow:a'"],
    checks: ['balances', 'held locks'],
  },
  {
    what: 'an account is dropped',
    statements: ["DELETE FROM accounts WHERE id = 'fees'", "DELETE FROM account_stripes WHERE account = 'fees'"],
    checks: ['balances'],
  },
  {
    what: 'a stripe gets money',
    statements: ["INSERT INTO account_stripes (account, stripe, available) VALUES ('earnings:nobody', 9, 5)"],
    checks: ['balances'],
  },
  {
    what: 'a movement and the balances with it are changed',
    statements: [
      "UPDATE journal SET amount = amount + 7 WHERE id = 'fund'",
      "UPDATE transfers SET amount = amount + 7 WHERE id = 'fund'",
      "UPDATE accounts SET available = available + 7 WHERE id = 'escrow:a'",
      "UPDATE accounts SET available = available - 7 WHERE id = 'treasury:test'",
    ],
    log: editRows((row) => [
      row[0] === 'transfer' ? [row[0], row[1], row[2], row[3], `${BigInt(row[4]) + 7n}`, row[5]] : row,
    ]),
    checks: ['hash chains'],
  },
  {
    what: 'a journal row is dropped',
    statements: ["DELETE FROM journal WHERE id = 'released' AND kind = 'release'"],
    log: editRows((row) => (row[0] === 'release' ? [] : [row])),
    checks: ['balances', 'lock history', 'hash chains'],
  },
  {
    what: 'a movement is told twice',
    statements: [
      "INSERT INTO journal SELECT chain, batch, position + 100, kind, id, account, counterparty, amount, charged, fee, drawn, price, at FROM journal WHERE id = 'settled' AND kind = 'settle'",
    ],
    log: editRows((row) => (row[0] === 'settle' && row[1] === 'settled' ? [row, row] : [row])),
    checks: ['balances', 'lock history', 'hash chains'],
  },
  {
    what: 'a row is added to a batch that is not there',
    statements: [
      "INSERT INTO journal SELECT chain, 999, 0, kind, id || 'x', account, counterparty, amount, 0, 0, 0, price, at FROM journal WHERE id = 'fund'",
    ],
    log: (records) => {
      const [fund] = records;
      const [row] = fund!.rows;
      if (row![0] !== 'transfer') throw new Error('the first record has no transfer');
      const [kind, id, ...rest] = row!;
      records.push({ ...fund!, n: 999, rows: [[kind, `${id}x`, ...rest]] });
    },
    checks: ['balances', 'transfers', 'hash chains'],
  },
  {
    what: 'a fee is said to be another part of its charge',
    statements: ["UPDATE locks SET fee_bps = 1000 WHERE id = 'settled'"],
    checks: ['charges'],
  },
  {
    what: 'a hash is edited',
    statements: ["UPDATE journal_batches SET hash = 'f' || substr(hash, 2) || 'f' WHERE n = 2"],
    log: ([, second]) => {
      second!.hash = `f${second!.hash.slice(1, -1)}0f`.slice(-64);
    },
    checks: ['hash chains'],
  },
  {
    what: 'what a batch follows is edited',
    statements: ['UPDATE journal_batches SET prev = hash WHERE n = 2'],
    log: ([, second]) => {
      second!.prev = second!.hash;
    },
    checks: ['hash chains'],
  },
  {
    what: 'a batch is dropped with its rows',
    statements: ['DELETE FROM journal WHERE batch = 2', 'DELETE FROM journal_batches WHERE n = 2'],
    log: (records) => {
      records.splice(1, 1);
    },
    checks: ['balances', 'lock history', 'hash chains'],
  },
  {
    what: 'the time of a movement is changed',
    statements: ["UPDATE journal SET at = at - 1 WHERE id = 'fund'"],
    log: ([fund]) => {
      fund!.at -= 1;
    },
    checks: ['transfers', 'hash chains'],
  },
  {
    what: 'a lock is resolved by hand',
    statements: ["UPDATE locks SET state = 'released', resolved_at = 1 WHERE id = 'held'"],
    checks: ['held locks', 'lock history', 'budgets'],
  },
  {
    what: 'a charge is lowered',
    statements: ["UPDATE locks SET charged = charged - 1 WHERE id = 'settled'"],
    checks: ['lock history', 'budgets'],
  },
  { what: 'a lock is dropped', statements: ["DELETE FROM locks WHERE id = 'released'"], checks: ['lock history'] },
  {
    what: 'a lock is forged',
    statements: [
      "INSERT INTO locks SELECT 'forged', account, amount, prices, budget, 'released', price, provider, 0, 0, 0, 0, created_at, expires_at, 5, lock_detail, usage, detail, parent, depth, lendable, lent, kept, fee_bps, stripe FROM locks WHERE id = 'held'",
    ],
    checks: ['lock history'],
  },
  {
    what: 'the provider of a settlement is changed',
    statements: ["UPDATE locks SET provider = 'other' WHERE id = 'settled'"],
    checks: ['lock history'],
  },
  {
    what: 'the usage of a settlement is lowered',
    statements: ["UPDATE locks SET usage = '{\"call\":59}' WHERE id = 'settled'"],
    checks: ['charges'],
  },
  {
    what: 'the price of a version is changed',
    statements: ['UPDATE prices SET rates = \'{"call":"2000000"}\''],
    checks: ['prices'],
  },
  { what: 'a price version is dropped', statements: ['DELETE FROM prices'], checks: ['charges'] },
  { what: 'a transfer is dropped', statements: ["DELETE FROM transfers WHERE id = 'fund'"], checks: ['transfers'] },
  { what: 'a budget is freed', statements: ['UPDATE budgets SET spent = 0'], checks: ['budgets'] },
];

describe.each(ENGINES)('%s', (name) => {
  let engine: OpenedEngine;
  afterEach(() => engine.dispose());

  /** One lock of every state, a fee, a budget, a draw. */
  beforeEach(async () => {
    engine = await openEngine(name);
    await createPriceBook(engine.database).remember([CRASH_PRICE]);
    const now = 1_000;
    const ledger = await createLedger({ database: engine.database, now: () => now });
    await ledger.transfer({ id: 'fund', from: treasuryOf('test'), to: escrowOf('a'), amount: 1_000n, memo: '' });
    const prices = [CRASH_PRICE.id];
    for (const id of ['settled', 'drawn', 'released', 'expired', 'held'])
      await ledger.lock({
        id,
        account: 'a',
        amount: 100n,
        prices,
        expiresAt: id === 'expired' ? now : now + 1_000,
        budgets: [{ id: 'b', limit: 1_000n }],
        detail: '{}',
      });
    const settle = { price: CRASH_PRICE.id, provider: 'p', feeBps: 500, detail: '{"outcome":"complete"}' };
    await ledger.settle({ ...settle, id: 'settled', charge: 60n, draw: false, usage: '{"call":60}' });
    await ledger.settle({ ...settle, id: 'drawn', charge: 130n, draw: true, usage: '{"call":130}' });
    await ledger.release({ id: 'released', detail: '{}' });
    await ledger.expire(now);
    await ledger.close();
  });

  const failing = async (options = {}) =>
    (await audit(engine.database, { overdueMs: null, ...options })).checks
      .filter(({ ok }) => !ok)
      .map((check) => check.name);

  test('books in order pass, and the totals say what there is', async () => {
    const report = await audit(engine.database, { now: () => 2_000, overdueMs: 0 });
    expect(report.checks.filter(({ ok }) => !ok)).toEqual([]);
    expect(report.ok).toBe(true);
    expect(report.totals).toEqual({
      accounts: 4,
      escrowAvailable: 710n,
      escrowLocked: 100n,
      earnings: 180n,
      fees: 10n,
      suspense: 0n,
      treasury: -1_000n,
      locksHeld: 1,
      locksSettled: 2,
      locksReleased: 1,
      locksExpired: 1,
      charged: 190n,
      shortfall: 0n,
      operations: 10,
    });
  });

  test.each(TAMPERINGS)('$what: $checks', async ({ checks, ...tampering }) => {
    await tamper(engine, tampering);
    expect(await failing()).toEqual(checks);
  });

  test('what was settled before basis points were kept is in order', async () => {
    await engine.database.batch([sql('UPDATE locks SET fee_bps = NULL')]);
    expect(await failing()).toEqual([]);
  });

  test('a lock that nobody swept is told', async () => {
    expect(await failing({ now: () => 2_001, overdueMs: 0 })).toEqual(['overdue locks']);
  });

  test('a break in a chain is told with its place', async () => {
    let place = '';
    await tamper(engine, {
      statements: ["UPDATE journal SET fee = fee + 1 WHERE id = 'drawn' AND kind = 'settle'"],
      log: (records) => {
        const record = records.find(({ rows }) => rows.some(([kind, id]) => kind === 'settle' && id === 'drawn'))!;
        record.rows = record.rows.map((row) =>
          row[0] === 'settle' ? [...row.slice(0, 7), '8', ...row.slice(8)] : row,
        ) as typeof record.rows;
        place = `log, record ${record.n}:`;
      },
    });
    if (name === 'postgres') {
      const [row] = await engine.database.query(
        sql(`SELECT chain, n FROM journal_batches WHERE movements LIKE '%["settle","drawn"%'`).statement,
      );
      place = `chain ${row!.chain}, batch ${row!.n}:`;
    }
    const { checks } = await audit(engine.database, { overdueMs: null });
    expect(checks.find((check) => check.name === 'hash chains')?.detail).toContain(place);
  });

  test('a settlement above what its usage costs is told, one past its cap may cost the lock in books of before', async () => {
    const ledger = await createLedger({ database: engine.database, now: () => 1_000 });
    const settle = async (id: string, charge: bigint, outcome: string) => {
      await ledger.lock({ id, account: 'a', amount: 100n, prices: [CRASH_PRICE.id], expiresAt: 5_000, detail: '{}' });
      await ledger.settle({
        id,
        charge,
        price: CRASH_PRICE.id,
        provider: 'p',
        draw: false,
        feeBps: 0,
        usage: '{"call":40}',
        detail: JSON.stringify({ outcome }),
      });
      return failing();
    };
    expect(await settle('past-cap-measured', 40n, 'over_cap')).toEqual([]);
    expect(await settle('past-cap-estimate', 100n, 'over_cap')).toEqual([]);
    const { checks } = await audit(engine.database, { overdueMs: null });
    expect(checks.find((check) => check.name === 'charges')?.detail).toContain(
      ', 1 the estimate (past their cap, by an earlier version)',
    );
    expect(await settle('cut', 39n, 'complete')).toEqual([]);
    expect(await settle('too-much', 41n, 'complete')).toEqual(['charges']);
    await ledger.close();
  });

  test('a free call that was charged is told', async () => {
    await engine.database.batch([sql(`UPDATE locks SET detail = '{"outcome":"free"}' WHERE id = 'settled'`)]);
    expect(await failing()).toEqual(['charges']);
  });
});
