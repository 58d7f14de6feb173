import { Client } from 'pg';
import { afterEach, beforeEach, expect, inject, test } from 'vitest';
import { audit, createLedger, createPriceBook } from '#billing/compose';
import { earningsOf, earningsTotals, escrowOf, FEES, treasuryOf, type Ledger } from '#billing';
import { priceId } from '#billing/amounts';
import { openDatabase, type OpenDatabase } from '#store';
import { adHoc } from '../support/ad-hoc.ts';
import { freshDatabase } from '../support/fresh-database.ts';
import { RATES } from '../support/ledger-commands.ts';

const DEEP = process.env['TOLLGATE_DEEP'] === '1';
const PROVIDER = 'provider';
const PRICE = priceId(PROVIDER, 'chat', RATES);
const CALL = { amount: 100n, prices: [PRICE], detail: '{}' };
const SETTLEMENT = { price: PRICE, provider: PROVIDER, charge: 80n, draw: false, feeBps: 1_000, usage: '{"call":80}' };
const STRIPES = adHoc('SELECT account, stripe, available FROM account_stripes ORDER BY account, stripe');

interface Gateway {
  readonly ledger: Ledger;
  readonly database: OpenDatabase;
  stop(): Promise<void>;
}

const disposals: (() => Promise<unknown>)[] = [];
let url: string;
beforeEach(async () => {
  const fresh = await freshDatabase(inject('postgresUrl'));
  disposals.push(fresh.drop);
  url = fresh.url;
});
afterEach(async () => {
  for (const dispose of disposals.splice(0).toReversed()) await dispose();
});

async function start(): Promise<Gateway> {
  const database = await openDatabase({ url, dataDir: '' });
  const ledger = await createLedger({ database });
  await createPriceBook(database).remember([{ id: PRICE, provider: PROVIDER, service: 'chat', rates: RATES }]);
  let isStopped = false;
  const stop = async () => {
    if (isStopped) return;
    isStopped = true;
    await ledger.close();
    await database.close();
  };
  disposals.push(stop);
  return { ledger, database, stop };
}

async function fund({ ledger }: Gateway, account: string, amount = 1_000_000n): Promise<void> {
  const [from, to] = [treasuryOf('test'), escrowOf(account)];
  await ledger.transfer({ id: `fund-${account}`, from, to, amount, memo: '' });
}

async function call({ ledger }: Gateway, id: string, account: string): Promise<void> {
  expect(await ledger.lock({ ...CALL, id, account, expiresAt: Date.now() + 600_000 })).toMatchObject({ ok: true });
  expect(await ledger.settle({ ...SETTLEMENT, id, detail: '{}' })).toMatchObject({ ok: true, charged: 80n, fee: 8n });
}

/** Holds rows like another gateway in the middle of a transaction. */
async function hold(text: string): Promise<{ letGo(): Promise<unknown> }> {
  const client = new Client({ connectionString: url });
  disposals.push(() => client.end());
  await client.connect();
  await client.query('BEGIN');
  await client.query(text);
  return { letGo: () => client.query('COMMIT') };
}

const withdraw = ({ ledger }: Gateway, id: string, from: ReturnType<typeof earningsOf>, amount: bigint) =>
  ledger.transfer({ id, from, to: treasuryOf('test'), amount, memo: '' });

async function expectCleanBooks({ database }: Gateway): Promise<void> {
  const report = await audit(database);
  expect(report.checks.filter(({ ok }) => !ok)).toEqual([]);
}

test('gateways credit the same provider and the fees without waiting for one another', async () => {
  const [first, second] = [await start(), await start()];
  await fund(first, 'a');
  await fund(second, 'b');
  await call(first, 'a1', 'a');
  await call(second, 'b1', 'b');
  // What a group of the first gateway holds until it is committed.
  const group = await hold('SELECT 1 FROM account_stripes WHERE stripe = 0 FOR UPDATE');
  await call(second, 'b2', 'b');
  await group.letGo();
  expect(await first.database.query(STRIPES)).toEqual([
    { account: earningsOf(PROVIDER), stripe: 0n, available: 72n },
    { account: earningsOf(PROVIDER), stripe: 1n, available: 144n },
    { account: FEES, stripe: 0n, available: 8n },
    { account: FEES, stripe: 1n, available: 16n },
  ]);
  expect(await first.ledger.balance(earningsOf(PROVIDER))).toEqual({ available: 216n, locked: 0n });
  expect(await second.ledger.balance(FEES)).toEqual({ available: 24n, locked: 0n });
  await expectCleanBooks(first);
});

test('a gateway takes the first stripe that no other holds', async () => {
  const stripesOf = async (gateway: Gateway, account: string) => {
    await fund(gateway, account);
    const before = await gateway.database.query(STRIPES);
    await call(gateway, `call-${account}`, account);
    const after = await gateway.database.query(STRIPES);
    const changed = after.filter(
      (row) => !before.some((old) => old['stripe'] === row['stripe'] && old['available'] === row['available']),
    );
    return new Set(changed.map(({ stripe }) => stripe));
  };
  const [first, second] = [await start(), await start()];
  expect(await stripesOf(first, 'a')).toEqual(new Set([0n]));
  expect(await stripesOf(second, 'b')).toEqual(new Set([1n]));
  await first.stop();
  const third = await start();
  expect(await stripesOf(third, 'c')).toEqual(new Set([0n]));
  await expectCleanBooks(third);
});

test('a debit takes what all gateways have credited, and no more', async () => {
  const [first, second] = [await start(), await start()];
  await fund(first, 'a');
  await fund(second, 'b');
  await call(first, 'a1', 'a');
  await call(second, 'b1', 'b');
  const earnings = earningsOf(PROVIDER);
  expect(await withdraw(first, 'too-much', earnings, 145n)).toEqual({
    ok: false,
    reason: 'insufficient',
    available: 144n,
  });
  expect(await withdraw(first, 'all', earnings, 144n)).toEqual({ ok: true, available: 0n });
  expect(await first.database.query(STRIPES)).toEqual([
    { account: FEES, stripe: 0n, available: 8n },
    { account: FEES, stripe: 1n, available: 8n },
  ]);
  await call(second, 'b2', 'b');
  expect(await second.ledger.balance(earnings)).toEqual({ available: 72n, locked: 0n });
  expect(await earningsTotals(second.database.query, PROVIDER)).toEqual({ available: 72n, earned: 216n });
  // A withdrawal that is given back is a credit to the account's own row.
  await second.ledger.transfer({ id: 'back', from: treasuryOf('test'), to: earnings, amount: 44n, memo: '' });
  expect(await first.ledger.balance(earnings)).toEqual({ available: 116n, locked: 0n });
  await expectCleanBooks(second);
});

test('a debit in the group of a settlement sees its credit', async () => {
  const gateway = await start();
  await fund(gateway, 'a');
  const { ledger } = gateway;
  await ledger.lock({ ...CALL, id: 'a1', account: 'a', expiresAt: Date.now() + 600_000 });
  const [settled, withdrawn] = await Promise.all([
    ledger.settle({ ...SETTLEMENT, id: 'a1', detail: '{}' }),
    withdraw(gateway, 'all', earningsOf(PROVIDER), 72n),
  ]);
  expect(settled).toMatchObject({ ok: true });
  expect(withdrawn).toEqual({ ok: true, available: 0n });
  await expectCleanBooks(gateway);
});

test('a debit waits for credits that are being written, and credits for a debit', async () => {
  const [first, second] = [await start(), await start()];
  await fund(first, 'a');
  await call(first, 'a1', 'a');
  const credit = await hold('UPDATE account_stripes SET available = available WHERE stripe = 0');
  const debit = withdraw(second, 'all', earningsOf(PROVIDER), 72n);
  let isOver = false;
  void debit.finally(() => (isOver = true));
  await new Promise((resolve) => setTimeout(resolve, 200));
  expect(isOver).toBe(false);
  await credit.letGo();
  expect(await debit).toEqual({ ok: true, available: 0n });
  await expectCleanBooks(first);
});

test(
  'calls and withdrawals of several gateways at once lose nothing and pay nothing twice',
  { timeout: 300_000 },
  async () => {
    const gateways = await Promise.all([start(), start(), start()]);
    const calls = DEEP ? 2_000 : 120;
    for (const account of ['a', 'b', 'c']) await fund(gateways[0], account, 100_000_000n);
    let paid = 0n;
    await Promise.all(
      gateways.map(async (gateway, at) => {
        const account = ['a', 'b', 'c'][at]!;
        for (let done = 0; done < calls; done += 4) {
          await Promise.all([0, 1, 2, 3].map((more) => call(gateway, `${account}-${done + more}`, account)));
          const amount = BigInt(1 + ((done * 37) % 200));
          const result = await withdraw(gateway, `out-${account}-${done}`, earningsOf(PROVIDER), amount);
          if (result.ok) paid += amount;
          else expect(result.reason).toBe('insufficient');
          if (done % 20 === 0) await withdraw(gateway, `fees-${account}-${done}`, FEES, 1n);
        }
      }),
    );
    const { available } = (await gateways[0].ledger.balance(earningsOf(PROVIDER)))!;
    expect(available + paid).toBe(72n * BigInt(calls * 3));
    await expectCleanBooks(gateways[1]);
  },
);
