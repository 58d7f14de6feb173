import { Client } from 'pg';
import { expect, test } from 'vitest';
import { escrowOf, treasuryOf } from '#billing';
import { adHoc } from '../support/ad-hoc.ts';
import {
  fund,
  lock,
  release,
  settle,
  watchedGateways,
  type Between,
  type WatchedGateway,
} from '../support/watched-gateway.ts';

const LEASES = adHoc("SELECT stripe, available FROM account_stripes WHERE account = 'escrow:a' ORDER BY stripe");
const ROOM = adHoc('SELECT stripe, leased - spent - locked AS room FROM budget_stripes ORDER BY stripe');

const { url, start, afterwards } = watchedGateways();

type Budgets = NonNullable<Parameters<typeof lock>[3]>['budgets'];

/** Calls at all gateways in turns, after which each has a lease. Each call costs 80 micro-USD. */
async function share(gateways: readonly WatchedGateway[], budgets: Budgets = [], account = 'a'): Promise<void> {
  for (let turn = 0; turn < 3 * gateways.length; turn += 1) {
    const gateway = gateways[turn % gateways.length]!;
    expect(await lock(gateway, `${account}-shared-${turn}`, account, { budgets })).toMatchObject({ ok: true });
    await settle(gateway, `${account}-shared-${turn}`);
  }
}

const leasesOf = async ({ database }: WatchedGateway) =>
  (await database.query(LEASES, [])).map((row) => row['available'] as bigint);

test('a consumer of several gateways is decided on at each alone, in one round trip', async () => {
  const [one, other] = [await start(), await start()];
  await fund(one, 'a');
  await share([one, other]);
  expect(await leasesOf(one)).toHaveLength(2);
  for (const gateway of [one, other]) gateway.sent.length = 0;
  for (let call = 0; call < 5; call += 1)
    for (const [index, gateway] of [one, other].entries()) {
      await lock(gateway, `l-${index}-${call}`, 'a');
      await settle(gateway, `l-${index}-${call}`);
    }
  for (const { sent } of [one, other]) {
    expect(sent).toHaveLength(10);
    for (const steps of sent) expect(steps).not.toMatch(/pgAccounts|pgAssumeAccounts\b|[0-9]{5}$/);
  }
  expect(await one.ledger.balance(escrowOf('a'))).toEqual({ available: 1_000_000n - 16n * 80n, locked: 0n });
});

test('nobody is refused who has the money, wherever it is', async () => {
  const gateways = [await start(), await start(), await start()];
  const [one, two, three] = gateways as [WatchedGateway, WatchedGateway, WatchedGateway];
  await fund(one, 'a');
  await share(gateways);
  expect(await leasesOf(one)).toHaveLength(3);
  const left = 1_000_000n - 9n * 80n;
  expect(await lock(three, 'all', 'a', { amount: left })).toEqual({ ok: true, available: 0n });
  expect(await lock(two, 'more', 'a', { amount: 1n })).toEqual({ ok: false, reason: 'insufficient', available: 0n });
  await release(three, 'all');
  expect(await lock(one, 'again', 'a', { amount: left })).toMatchObject({ ok: true });
});

test('a refusal has the whole balance', async () => {
  const [one, other] = [await start(), await start()];
  await fund(one, 'a');
  await share([one, other]);
  const available = 1_000_000n - 6n * 80n;
  expect(await lock(one, 'much', 'a', { amount: 2_000_000n })).toEqual({
    ok: false,
    reason: 'insufficient',
    available,
  });
});

test('money of gateways that are gone is there', async () => {
  const [one, other] = [await start(), await start()];
  await fund(one, 'a');
  await share([one, other]);
  await other.stop();
  expect(await lock(one, 'all', 'a', { amount: 1_000_000n - 6n * 80n })).toEqual({ ok: true, available: 0n });
});

test('a transfer takes all of it, and what locks hold stays where it is', async () => {
  const [one, other] = [await start(), await start()];
  await fund(one, 'a');
  await share([one, other]);
  await lock(one, 'held', 'a');
  const all = 1_000_000n - 6n * 80n - 100n;
  const out = { from: escrowOf('a'), to: treasuryOf('test'), memo: '' };
  expect(await other.ledger.transfer({ ...out, id: 'out', amount: all })).toEqual({ ok: true, available: 0n });
  expect(await settle(one, 'held')).toMatchObject({ ok: true, charged: 80n });
  expect(await other.ledger.transfer({ ...out, id: 'rest', amount: 20n })).toEqual({ ok: true, available: 0n });
});

test('the only lock of a lease, which another gateway has ended, is not ended again', async () => {
  const [one, other] = [await start(), await start()];
  await fund(one, 'a');
  await share([one, other]);
  for (const end of [release, settle]) {
    await lock(one, end.name, 'a');
    expect(await settle(other, end.name)).toMatchObject({ ok: true, charged: 80n });
    expect(await end(one, end.name)).toMatchObject({ ok: false, reason: 'already_resolved' });
  }
  expect(await one.ledger.balance(escrowOf('a'))).toEqual({ available: 1_000_000n - 8n * 80n, locked: 0n });
});

test('any gateway ends a lock of a lease', async () => {
  const [one, other] = [await start(), await start()];
  await fund(one, 'a');
  const budgets = [{ id: 'key:1', limit: 500_000n }];
  await share([one, other], budgets);
  for (const id of ['settled', 'released', 'expired', 'kept'])
    await lock(one, id, 'a', { budgets, expiresAt: id === 'expired' ? 1 : Date.now() + 600_000 });
  expect(await one.ledger.find('settled')).toMatchObject({ state: 'held' });
  expect(await settle(other, 'settled')).toMatchObject({ ok: true, charged: 80n });
  expect(await release(other, 'released')).toEqual({ ok: true });
  expect(await other.ledger.expire(Date.now())).toEqual(['expired']);
  expect(await other.ledger.keep('kept', Date.now() + 900_000)).toEqual({ ok: true });
  expect(await release(one, 'released')).toEqual({ ok: false, reason: 'already_resolved' });
  expect(await other.ledger.budget('key:1')).toEqual({ spent: 7n * 80n, locked: 100n });
});

const WAITING = adHoc(
  "SELECT 1 AS one FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
);

/** Holds the next write of a gateway, whose rows are locked, until another one waits for them. */
function heldWrite() {
  let isArmed = false;
  let reached!: () => void;
  let open!: () => void;
  const isReached = new Promise<void>((resolve) => (reached = resolve));
  const isOpen = new Promise<void>((resolve) => (open = resolve));
  const between: Between = async (steps) => {
    if (!isArmed || !steps.some(({ statement }) => statement.name.endsWith('pgCommit'))) return steps;
    isArmed = false;
    reached();
    await isOpen;
    return steps;
  };
  const untilWaiting = async ({ database }: WatchedGateway) => {
    await expect.poll(() => database.query(WAITING, []), { timeout: 30_000 }).not.toEqual([]);
  };
  return {
    between,
    /** Runs `first` up to its write, and then `second`, which has to wait for it. */
    async both<A, B>(observer: WatchedGateway, first: () => Promise<A>, second: () => Promise<B>): Promise<[A, B]> {
      isArmed = true;
      const begun = first();
      await isReached;
      const waits = second();
      await untilWaiting(observer);
      open();
      return [await begun, await waits];
    },
  };
}

test('a lock in a lease ends with what was lent from it while its end waited', async () => {
  const write = heldWrite();
  const [one, other] = [await start(), await start(write.between)];
  await fund(one, 'a');
  await share([one, other]);
  await lock(one, 'parent', 'a', { amount: 300n, lendable: 200n });
  const [child, end] = await write.both(
    one,
    () => lock(other, 'child', 'a', { parent: 'parent' }),
    () => settle(one, 'parent'),
  );
  expect([child, end]).toMatchObject([{ ok: true }, { ok: true, charged: 80n }]);
  expect(await one.ledger.balance(escrowOf('a'))).toEqual({ available: 1_000_000n - 7n * 80n - 100n, locked: 100n });
  expect(await settle(other, 'child')).toMatchObject({ ok: true, charged: 80n });
  expect(await one.ledger.balance(escrowOf('a'))).toEqual({ available: 1_000_000n - 8n * 80n, locked: 0n });
});

test('a lock in a lease ends with what was given back to it while its end waited', async () => {
  const write = heldWrite();
  const [one, other] = [await start(), await start(write.between)];
  await fund(one, 'a');
  await share([one, other]);
  await lock(one, 'parent', 'a', { amount: 300n, lendable: 200n });
  await lock(other, 'child', 'a', { parent: 'parent' });
  const ends = await write.both(
    one,
    () => settle(other, 'child', 10n),
    () => settle(one, 'parent'),
  );
  expect(ends).toMatchObject([{ charged: 10n }, { charged: 80n }]);
  expect(await one.ledger.balance(escrowOf('a'))).toEqual({ available: 1_000_000n - 7n * 80n - 10n, locked: 0n });
});

test('what one operation of a group gives back, the next can spend', async () => {
  const [one, other] = [await start(), await start()];
  await fund(one, 'a');
  await share([one, other]);
  await lock(one, 'first', 'a');
  await lock(one, 'rest', 'a', { amount: 1_000_000n - 6n * 80n - 100n });
  const [, next] = await Promise.all([release(one, 'first'), lock(one, 'next', 'a')]);
  expect(next).toMatchObject({ ok: true });
  const [, drawn] = await Promise.all([release(one, 'next'), settle(one, 'rest', 1_000_000n - 6n * 80n - 50n, true)]);
  expect(drawn).toMatchObject({ ok: true, drawn: 50n, shortfall: 0n });
});

test('a settlement draws what it needs from all leases', async () => {
  const [one, other] = [await start(), await start()];
  await fund(one, 'a');
  const budgets = [{ id: 'key:1', limit: 500_000n }];
  await share([one, other], budgets);
  await lock(one, 'dear', 'a', { budgets });
  const left = 1_000_000n - 6n * 80n;
  expect(await settle(one, 'dear', left + 1n, true)).toMatchObject({
    charged: left,
    drawn: left - 100n,
    shortfall: 1n,
  });
  expect(await other.ledger.budget('key:1')).toEqual({ spent: 1_000_000n, locked: 0n });
  expect(await lock(other, 'no', 'a', { amount: 1n })).toMatchObject({ ok: false, reason: 'insufficient' });
});

test('a budget of several gateways is leased, and grants exactly its limit', async () => {
  const [one, other] = [await start(), await start()];
  await fund(one, 'a', 100_000_000n);
  const budgets = [{ id: 'key:1', limit: 100_000n }];
  await share([one, other], budgets);
  const rooms = (await one.database.query(ROOM, [])).map((row) => row['room'] as bigint);
  expect(rooms).toHaveLength(2);
  const left = 100_000n - 6n * 80n;
  expect(await lock(one, 'too much', 'a', { amount: left + 1n, budgets })).toEqual({
    ok: false,
    reason: 'budget_exceeded',
    available: 100_000_000n - 6n * 80n,
    budget: { id: 'key:1', limit: 100_000n, spent: 480n, locked: 0n },
  });
  expect(await lock(other, 'all', 'a', { amount: left, budgets })).toMatchObject({ ok: true });
  expect(await lock(one, 'more', 'a', { amount: 1n, budgets })).toMatchObject({ ok: false, reason: 'budget_exceeded' });
});

test('a lower limit holds at once, at every gateway', async () => {
  const [one, other] = [await start(), await start()];
  await fund(one, 'a', 100_000_000n);
  await share([one, other], [{ id: 'key:1', limit: 100_000n }]);
  const lower = [{ id: 'key:1', limit: 600n }];
  expect(await lock(one, 'fits', 'a', { amount: 100n, budgets: lower })).toMatchObject({ ok: true });
  for (const gateway of [one, other])
    expect(await lock(gateway, 'no', 'a', { amount: 21n, budgets: lower })).toMatchObject({
      reason: 'budget_exceeded',
    });
  expect(await lock(other, 'last', 'a', { amount: 20n, budgets: lower })).toMatchObject({ ok: true });
});

test('nothing is leased while a gateway runs that does not know leases', async () => {
  const older = new Client({ connectionString: url() });
  await older.connect();
  afterwards(() => older.end().catch(() => {}));
  await older.query('SELECT pg_advisory_lock(1416588354, 0)');
  const [one, other] = [await start(), await start()];
  await fund(one, 'a');
  await share([one, other]);
  expect(await leasesOf(one)).toEqual([]);
  await older.query('SELECT pg_advisory_unlock(1416588354, 0)');
  await lock(one, 'later', 'a');
  expect(await leasesOf(one)).toHaveLength(1);
});

test('money for a few calls is not divided', async () => {
  const [one, other] = [await start(), await start()];
  await fund(one, 'a', 1_000n);
  await share([one, other]);
  expect(await leasesOf(one)).toEqual([]);
  expect(await lock(other, 'all', 'a', { amount: 520n })).toEqual({ ok: true, available: 0n });
});
