import { expect, test } from 'vitest';
import { earningsOf, escrowOf, treasuryOf } from '#billing';
import { adHoc } from '../support/ad-hoc.ts';
import { fund, lock, PROVIDER, release, settle, watchedGateways } from '../support/watched-gateway.ts';

/** What PostgreSQL answers to a statement that an administrator cancels. */
const CANCELED = adHoc(`DO $$ BEGIN RAISE EXCEPTION 'canceled' USING ERRCODE = '57014'; END $$`);

const { start } = watchedGateways();

const later = () => Date.now() + 600_000;

test('a group is decided on rows that its gateway knows, in one round trip', async () => {
  const gateway = await start();
  await fund(gateway, 'a');
  await lock(gateway, 'l1', 'a');
  gateway.sent.length = 0;
  await settle(gateway, 'l1');
  await lock(gateway, 'l2', 'a');
  expect(gateway.sent).toHaveLength(2);
});

test('nobody is refused because of what a gateway remembers', async () => {
  const [one, other] = [await start(), await start()];
  await fund(one, 'a', 100n);
  expect(await lock(one, 'l1', 'a')).toMatchObject({ ok: true });
  await other.ledger.transfer({ id: 'more', from: treasuryOf('test'), to: escrowOf('a'), amount: 100n, memo: '' });
  expect(await lock(one, 'l2', 'a')).toEqual({ ok: true, available: 0n });
});

test('a group that leaves a balance as it is sees what others have taken of it', async () => {
  const [one, other] = [await start(), await start()];
  await fund(one, 'a', 200n);
  await lock(one, 'l1', 'a');
  await lock(other, 'x', 'a');
  const [locked] = await Promise.all([lock(one, 'l2', 'a'), release(one, 'l1')]);
  expect(locked).toEqual({ ok: false, reason: 'insufficient', available: 0n });
});

test('a group that leaves a budget as it is sees what others have spent of it', async () => {
  const [one, other] = [await start(), await start()];
  await fund(one, 'a', 10_000n);
  const budgets = (limit: bigint) => [{ id: 'limited:1', limit }];
  await lock(one, 'l1', 'a', { budgets: budgets(300n) });
  for (let call = 0; call < 5; call += 1) await lock(other, `x${call}`, 'a', { budgets: budgets(1_000n) });
  const [locked] = await Promise.all([lock(one, 'l2', 'a', { budgets: budgets(300n) }), release(one, 'l1')]);
  expect(locked).toMatchObject({ ok: false, reason: 'budget_exceeded', budget: { locked: 600n } });
});

test('a group that leaves a balance as it is waits for a group that reads it', async () => {
  let reached!: () => void;
  let open!: () => void;
  const isReached = new Promise<void>((resolve) => (reached = resolve));
  const isOpen = new Promise<void>((resolve) => (open = resolve));
  const slow = await start(async (steps) => {
    if (steps.some(({ statement }) => statement.name.includes('pgChangeLocks'))) {
      reached();
      await isOpen;
    }
    return steps;
  });
  const quick = await start();
  await fund(quick, 'a');
  await lock(quick, 'l1', 'a');
  const kept = slow.ledger.keep('l1', later() + 5_000);
  await isReached;
  const group = Promise.all([lock(quick, 'l2', 'a'), release(quick, 'l1')]);
  let isDone = false;
  void group.then(() => (isDone = true));
  await new Promise((resolve) => setTimeout(resolve, 500));
  expect(isDone).toBe(false);
  open();
  expect(await kept).toEqual({ ok: true });
  expect(await group).toMatchObject([{ ok: true }, { ok: true }]);
  expect(await quick.ledger.find('l1')).toMatchObject({ state: 'released', isKept: true });
});

test('nothing is written if the transaction could not be begun', async () => {
  let isBroken = false;
  const one = await start((steps) => {
    const breaks = isBroken && steps.some(({ statement }) => statement.name.endsWith('pgCommit'));
    if (breaks) isBroken = false;
    return Promise.resolve(breaks ? [{ statement: CANCELED }, ...steps.slice(1)] : steps);
  });
  const other = await start();
  await fund(one, 'a');
  const budgets = [{ id: 'limited:1', limit: 300n }];
  await lock(one, 'l1', 'a', { budgets });
  await lock(other, 'x1', 'a', { budgets });
  await lock(other, 'x2', 'a', { budgets });
  isBroken = true;
  await expect(lock(one, 'l2', 'a', { budgets })).rejects.toMatchObject({ code: '57014' });
  expect(await one.ledger.budget('limited:1')).toEqual({ spent: 0n, locked: 300n });
  expect(await one.ledger.find('l2')).toBeNull();
});

test("withdrawals and calls with budgets do not stand in each other's way", async () => {
  const [one, other] = [await start(), await start()];
  await fund(one, 'a');
  await fund(other, 'b');
  const budgets = [{ id: 'limited:1', limit: 1_000_000n }];
  const calls = async () => {
    for (let call = 0; call < 100; call += 1)
      await Promise.all([lock(one, `a${call}`, 'a', { budgets }), call > 0 ? settle(one, `a${call - 1}`) : null]);
  };
  const withdrawals = async () => {
    const [from, to] = [earningsOf(PROVIDER), treasuryOf('test')];
    for (let call = 0; call < 100; call += 1)
      await Promise.all([
        lock(other, `b${call}`, 'b', { budgets }),
        other.ledger.transfer({ id: `w${call}`, from, to, amount: 1n, memo: '' }),
      ]);
  };
  await Promise.all([calls(), withdrawals()]);
  // A deadlock.
  expect([...one.sent, ...other.sent].filter((text) => text.endsWith('40P01'))).toEqual([]);
});
