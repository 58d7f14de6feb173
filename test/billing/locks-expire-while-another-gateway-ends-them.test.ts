import { expect, test } from 'vitest';
import { escrowOf } from '#billing';
import { expireAll } from '#billing/compose';
import { fund, lock, PROVIDER, release, settle, watchedGateways } from '../support/watched-gateway.ts';

// One gateway finds a lock overdue at the moment at which the other, where its call ran on, settles or releases it.

const ROUNDS = process.env['TOLLGATE_DEEP'] === '1' ? 200 : 12;
const LOCKS = 20;
const FUNDS = 1_000_000n;
const AMOUNT = 100n;
const CHARGE = 80n;
const LIMIT = 500_000n;

const { start } = watchedGateways();

test('a lock has one end, which its gateway is told, whether its account and its budget are leased or not', async () => {
  const [sweeper, own] = [await start(), await start()];
  await fund(sweeper, 'a', FUNDS);
  let charged = 0n;
  for (let round = 0; round < ROUNDS; round += 1) {
    const ids = Array.from({ length: LOCKS }, (_, index) => `lock-${round}-${index}`);
    const due = Date.now() + 600_000;
    const budgets = [{ id: 'a:all', limit: LIMIT }];
    // Both make locks of the account, so that soon each has a lease of it.
    for (const [index, id] of ids.entries()) {
      const made = await lock(index % 3 === 0 ? sweeper : own, id, 'a', { amount: AMOUNT, expiresAt: due, budgets });
      expect(made).toMatchObject({ ok: true });
    }
    const end = (id: string, index: number) => (index % 4 === 0 ? release(own, id) : settle(own, id, CHARGE));
    const [first, last] = [ids[1]!, ids.at(-1)!];
    // One certainly ends before the sweeps, one after them, and the others at the same time.
    expect(await end(first, 1)).toMatchObject({ ok: true });
    const racing = ids.slice(0, -1).map((id, index) => (id === first ? Promise.resolve({ ok: true }) : end(id, index)));
    const [raced, ...expired] = await Promise.all([
      Promise.all(racing),
      expireAll(sweeper.ledger, due),
      expireAll(own.ledger, due),
    ]);
    const told = [...raced, await end(last, LOCKS - 1)];
    expect(told.at(-1)).toMatchObject({ ok: false, reason: 'already_resolved' });
    let refused = 0;
    for (const [index, id] of ids.entries()) {
      const { state, charged: sum } = (await sweeper.ledger.find(id))!;
      const { ok } = told[index]!;
      if (!ok) refused += 1;
      expect([id, state, sum]).toEqual([
        id,
        ok ? (index % 4 === 0 ? 'released' : 'settled') : 'expired',
        ok && index % 4 !== 0 ? CHARGE : 0n,
      ]);
      charged += sum;
    }
    expect(expired[0] + expired[1]).toBe(refused);
  }
  for (const { ledger } of [sweeper, own]) {
    expect(await ledger.balance(escrowOf('a'))).toEqual({ available: FUNDS - charged, locked: 0n });
    expect(await ledger.budget('a:all')).toEqual({ spent: charged, locked: 0n });
    expect((await ledger.balance(`earnings:${PROVIDER}`))!.available).toBe((charged * 9n) / 10n);
  }
});
