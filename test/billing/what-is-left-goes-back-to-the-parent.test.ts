import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { earningsOf, escrowOf, treasuryOf } from '#billing';
import type { LockRequest, SettleRequest } from '../../src/billing/ledger/ledger.ts';
import { CONTRACT_LEDGERS, openContractLedger, type ContractLedger } from '../support/contract-ledger.ts';

describe.each(CONTRACT_LEDGERS)('%s', (name) => {
  let now = 1_000_000;
  let contract: ContractLedger;
  let turn = 0;
  let account = '';
  let run = '';
  let child = '';
  let budget = '';
  beforeAll(async () => {
    contract = await openContractLedger(name, () => now);
  });
  afterAll(() => contract.dispose());
  /** A run of 400 that may lend 300, and a child of 100 under it, of an account with 1,000. */
  beforeEach(async () => {
    turn += 1;
    account = `account-${turn}`;
    run = `run-${turn}`;
    child = `${run}-child`;
    budget = `budget-${turn}`;
    await contract.ledger.transfer({
      id: `fund-${turn}`,
      from: treasuryOf('test'),
      to: escrowOf(account),
      amount: 1_000n,
      memo: '',
    });
    await lock(run, { amount: 400n, lendable: 300n, budgets: [{ id: budget, limit: 1_000n }] });
    await lock(child, { parent: run });
  });

  const lock = (id: string, changes: Partial<LockRequest> = {}) =>
    contract.ledger.lock({
      id,
      account,
      amount: 100n,
      prices: ['price-1'],
      expiresAt: now + 1_000,
      detail: '{}',
      ...changes,
    });
  const settle = (id: string, charge: bigint, changes: Partial<SettleRequest> = {}) =>
    contract.ledger.settle({
      id,
      price: 'price-1',
      provider: `p-${turn}`,
      charge,
      draw: false,
      feeBps: 0,
      usage: '{}',
      detail: '{}',
      ...changes,
    });
  const release = (id: string) => contract.ledger.release({ id, detail: '{}' });
  /** [available, locked, locked of the budget, spent of the budget] */
  const money = async () => {
    const { available, locked } = (await contract.ledger.balance(escrowOf(account)))!;
    const used = await contract.ledger.budget(budget);
    return [available, locked, used.locked, used.spent];
  };
  const lent = async (id: string) => (await contract.ledger.find(id))!.lent;

  test('a settlement costs the run what was charged and leaves it the rest to lend', async () => {
    expect(await settle(child, 60n)).toMatchObject({ ok: true, charged: 60n, fee: 0n, drawn: 0n, shortfall: 0n });
    expect(await money()).toEqual([600n, 340n, 340n, 60n]);
    expect(await lent(run)).toBe(60n);
    expect(await lock(`${run}-next`, { parent: run, amount: 240n })).toMatchObject({ ok: true });
    expect(await contract.failing()).toEqual([]);
  });

  test('a release and an expiry leave the run all of it', async () => {
    await release(child);
    expect(await money()).toEqual([600n, 400n, 400n, 0n]);
    await lock(`${run}-due`, { parent: run, expiresAt: now });
    expect(await contract.ledger.expire(now)).toEqual([`${run}-due`]);
    expect(await money()).toEqual([600n, 400n, 400n, 0n]);
    expect(await lent(run)).toBe(0n);
    expect(await contract.failing()).toEqual([]);
  });

  test('a child is charged at most its lock, and never draws on what is available', async () => {
    expect(await settle(child, 130n, { draw: true })).toMatchObject({
      ok: true,
      charged: 100n,
      fee: 0n,
      drawn: 0n,
      shortfall: 30n,
    });
    expect(await money()).toEqual([600n, 300n, 300n, 100n]);
  });

  test('a run is charged at most its own part, and what it lent and what it could have lent is not its own', async () => {
    await settle(child, 60n);
    expect(await settle(run, 150n)).toMatchObject({ ok: true, charged: 100n, fee: 0n, drawn: 0n, shortfall: 50n });
    expect(await money()).toEqual([840n, 0n, 0n, 160n]);
    expect(await contract.ledger.balance(earningsOf(`p-${turn}`))).toEqual({ available: 160n, locked: 0n });
    expect(await contract.failing()).toEqual([]);
  });

  test('a run without a parent draws on what is available, beyond its own part', async () => {
    expect(await settle(run, 150n, { draw: true })).toMatchObject({
      ok: true,
      charged: 150n,
      fee: 0n,
      drawn: 50n,
      shortfall: 0n,
    });
    expect(await money()).toEqual([750n, 100n, 100n, 150n]);
    expect(await contract.failing()).toEqual([]);
  });

  test('what it draws was available before, so what it did not lend pays for nothing of its own', async () => {
    await lock(`${run}-rest`, { amount: 590n });
    expect(await settle(run, 150n, { draw: true })).toMatchObject({
      ok: true,
      charged: 110n,
      fee: 0n,
      drawn: 10n,
      shortfall: 40n,
    });
    expect((await money()).slice(0, 2)).toEqual([200n, 690n]);
  });

  test('children keep what they hold when their parent is resolved, and then give back to what is available', async () => {
    await release(run);
    expect(await money()).toEqual([900n, 100n, 100n, 0n]);
    expect(await settle(child, 60n)).toMatchObject({ ok: true, charged: 60n });
    expect(await money()).toEqual([940n, 0n, 0n, 60n]);
    expect(await lent(run)).toBe(100n);
    expect(await contract.failing()).toEqual([]);
  });

  test('nothing goes further up than to the parent', async () => {
    await lock(`${run}-branch`, { parent: run, amount: 150n, lendable: 120n });
    await lock(`${run}-leaf`, { parent: `${run}-branch`, amount: 80n });
    await settle(`${run}-branch`, 10n);
    expect(await lent(run)).toBe(190n);
    expect(await money()).toEqual([600n, 390n, 390n, 10n]);
    await settle(`${run}-leaf`, 30n);
    expect(await lent(run)).toBe(190n);
    expect(await lent(`${run}-branch`)).toBe(80n);
    expect(await money()).toEqual([650n, 310n, 310n, 40n]);
    expect(await contract.failing()).toEqual([]);
  });

  test('one cap bounds all that is under it, however deep', async () => {
    await release(child);
    let parent = run;
    for (const id of ['a', 'b', 'c']) {
      await lock(`${run}-${id}`, { parent, amount: 300n, lendable: 300n });
      parent = `${run}-${id}`;
    }
    expect(await lock(`${run}-beside`, { parent: run, amount: 1n })).toMatchObject({
      ok: false,
      reason: 'parent_exhausted',
    });
    expect(await lock(`${run}-leaf`, { parent, amount: 300n })).toMatchObject({ ok: true });
    expect(await money()).toEqual([600n, 400n, 400n, 0n]);
    for (const id of ['leaf', 'c', 'b', 'a']) await settle(`${run}-${id}`, id === 'leaf' ? 120n : 0n);
    expect(await lent(run)).toBe(120n);
    expect(await money()).toEqual([600n, 280n, 280n, 120n]);
    expect(await contract.failing()).toEqual([]);
  });

  test('parent and children that end in one breath end in that order', async () => {
    await lock(`${run}-b`, { parent: run });
    await Promise.all([settle(child, 25n), settle(run, 5n), settle(`${run}-b`, 40n), release(child)]);
    expect(await lent(run)).toBe(125n);
    expect(await money()).toEqual([930n, 0n, 0n, 70n]);
    expect(await contract.failing()).toEqual([]);
  });

  test('a run and all under it that were never resolved are given back in full', async () => {
    await lock(`${run}-branch`, { parent: run, amount: 150n, lendable: 120n, expiresAt: now + 5_000 });
    await lock(`${run}-leaf`, { parent: `${run}-branch`, amount: 80n, expiresAt: now });
    now += 10_000;
    const expired = (await contract.ledger.expire(now)).filter((id) => id === run || id.startsWith(`${run}-`));
    expect(expired).toEqual([`${run}-leaf`, run, child, `${run}-branch`]);
    expect(await money()).toEqual([1_000n, 0n, 0n, 0n]);
    expect(await contract.failing()).toEqual([]);
  });
});
