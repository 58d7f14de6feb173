import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { audit } from '#billing/compose';
import { earningsOf, escrowOf, treasuryOf } from '#billing';
import { adHoc } from '../support/ad-hoc.ts';
import { freshDatabase } from '../support/fresh-database.ts';
import { lock, PROVIDER, release, settle, watchedGateway, type WatchedGateway } from '../support/watched-gateway.ts';

/*
 * Locks under locks of the same few accounts, made and ended at any of three gateways at once, with budgets whose
 * limits change, transfers in and out, and connections of ledgers that are cut. Money is short, so leases move all the
 * time.
 */
const SECONDS = process.env['TOLLGATE_DEEP'] === '1' ? 120 : 4;
const ACCOUNTS = ['a', 'b', 'c'];
const LIMITS = [20_000n, 20_000n, 20_000n, 12_000n];

const STRIPES = adHoc(`SELECT s.account, s.stripe FROM account_stripes AS s WHERE s.locked <> (
  SELECT COALESCE(SUM(amount - lent), 0) FROM locks
  WHERE locks.stripe = s.stripe AND 'escrow:' || locks.account = s.account AND resolved_at IS NULL)`);
const BUDGETS = adHoc(`SELECT s.budget, s.stripe FROM budget_stripes AS s WHERE s.locked <> (
  SELECT COALESCE(SUM(amount - lent), 0) FROM locks
  WHERE locks.stripe = s.stripe AND s.budget = ANY (string_to_array(locks.budget, ' ')) AND resolved_at IS NULL)`);
const CUT_ONE = adHoc(`SELECT pg_terminate_backend(pid) FROM (
  SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND classid = 1416588355
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) ORDER BY random() LIMIT 1) AS one`);
const LEASED = adHoc('SELECT 1 AS one FROM locks WHERE stripe IS NOT NULL LIMIT 1');

let drop: () => Promise<void>;
const gateways: WatchedGateway[] = [];
beforeAll(async () => {
  const fresh = await freshDatabase(inject('postgresUrl'));
  drop = fresh.drop;
  for (let count = 0; count < 3; count += 1) gateways.push(await watchedGateway(fresh.url));
});
afterAll(async () => {
  for (const gateway of gateways) await gateway.stop();
  await drop();
});

const below = (limit: number) => Math.floor(Math.random() * limit);
const oneOf = <T>(list: readonly T[]): T => list[below(list.length)]!;
let made = 0;
/** The end of each lock, as it was acknowledged. */
const told = new Map<string, { readonly state: string; readonly charged: bigint }>();

async function end(id: string, amount: bigint): Promise<void> {
  const gateway = oneOf(gateways);
  if (Math.random() < 0.3) {
    if ((await release(gateway, id)).ok) told.set(id, { state: 'released', charged: 0n });
    return;
  }
  const draws = Math.random() < 0.15;
  const charge = draws ? amount + BigInt(below(300)) : (amount * BigInt(below(100))) / 100n;
  const settled = await settle(gateway, id, charge, draws);
  if (settled.ok) told.set(id, { state: 'settled', charged: settled.charged });
}

/** A lock with locks under it, which end before or after it. */
async function tree(account: string, depth: number, parent?: { readonly id: string; readonly lendable: bigint }) {
  const id = `lock-${(made += 1)}`;
  const amount = parent ? parent.lendable / 3n : BigInt(below(20) === 0 ? 3_000 : below(300));
  const lendable = depth > 0 && Math.random() < 0.7 ? amount / 2n : 0n;
  const budget = { id: oneOf(['all:1', `key-${account}:1`]), limit: oneOf(LIMITS) };
  const more = parent ? { parent: parent.id } : { budgets: Math.random() < 0.6 ? [budget] : [] };
  if (!(await lock(oneOf(gateways), id, account, { amount, lendable, ...more })).ok) return;
  const children = Array.from({ length: lendable > 0n ? 1 + below(3) : 0 }, () =>
    tree(account, depth - 1, { id, lendable }),
  );
  if (Math.random() < 0.5) await Promise.all(children);
  await end(id, amount - lendable);
  await Promise.all(children);
}

async function move(): Promise<void> {
  const { ledger } = oneOf(gateways);
  const account = escrowOf(oneOf(ACCOUNTS));
  const [id, amount] = [`transfer-${(made += 1)}`, BigInt(1 + below(1_000))];
  const [from, to] = oneOf([
    [treasuryOf('test'), account],
    [treasuryOf('test'), account],
    [account, treasuryOf('test')],
    [earningsOf(PROVIDER), account],
  ] as const);
  await ledger.transfer({ id, from, to, amount, memo: '' });
}

test('trees of locks at three gateways leave the books in order', { timeout: 60_000 + SECONDS * 2_000 }, async () => {
  for (const account of ACCOUNTS) {
    const [from, to] = [treasuryOf('test'), escrowOf(account)];
    await gateways[0]!.ledger.transfer({ id: `fund-${account}`, from, to, amount: 30_000n, memo: '' });
  }
  const until = Date.now() + SECONDS * 1_000;
  const repeat = async (work: () => Promise<unknown>, pauseMs: number) => {
    while (Date.now() < until) {
      await work();
      if (pauseMs > 0) await new Promise((resolve) => setTimeout(resolve, below(2 * pauseMs)));
    }
  };
  await Promise.all([
    ...Array.from({ length: 18 }, (_, index) => repeat(() => tree(ACCOUNTS[index % 3]!, 2), 0)),
    repeat(move, 30),
    repeat(() => gateways[0]!.database.query(CUT_ONE, []), 700),
  ]);
  const { ledger, database } = gateways[0]!;
  const ids = [...told.keys()];
  expect(ids.length).toBeGreaterThan(100);
  const wrong: string[] = [];
  for (const id of ids) {
    const { state, charged } = (await ledger.find(id))!;
    const { state: toldState, charged: toldCharge } = told.get(id)!;
    if (state !== toldState || charged !== toldCharge)
      wrong.push(`${id}: told ${toldState} ${toldCharge}, is ${state} ${charged}`);
  }
  expect(wrong).toEqual([]);
  expect(await database.query(STRIPES, [])).toEqual([]);
  expect(await database.query(BUDGETS, [])).toEqual([]);
  expect(await database.query(LEASED, [])).toHaveLength(1);
  expect((await audit(database)).checks.filter(({ ok }) => !ok)).toEqual([]);
});
