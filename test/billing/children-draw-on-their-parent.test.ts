import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { escrowOf, treasuryOf } from '#billing';
import { LOCK_LEVELS, type LockRequest } from '../../src/billing/ledger/ledger.ts';
import { CONTRACT_LEDGERS, openContractLedger, type ContractLedger } from '../support/contract-ledger.ts';

describe.each(CONTRACT_LEDGERS)('%s', (name) => {
  const now = 1_000_000;
  let contract: ContractLedger;
  let turn = 0;
  let account = '';
  let run = '';
  beforeAll(async () => {
    contract = await openContractLedger(name, () => now);
  });
  afterAll(() => contract.dispose());
  /** A run that may lend 300 of its 400, of an account with 1,000. */
  beforeEach(async () => {
    turn += 1;
    account = `account-${turn}`;
    run = `run-${turn}`;
    await contract.ledger.transfer({
      id: `fund-${turn}`,
      from: treasuryOf('test'),
      to: escrowOf(account),
      amount: 1_000n,
      memo: '',
    });
    await lock(run, { amount: 400n, lendable: 300n });
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
  const balance = () => contract.ledger.balance(escrowOf(account));

  test('the money comes from what the parent may lend, not from what is available', async () => {
    expect(await lock(`${run}-a`, { parent: run })).toEqual({ ok: true, available: 600n });
    expect(await balance()).toEqual({ available: 600n, locked: 400n });
    expect(await contract.ledger.find(run)).toMatchObject({
      amount: 400n,
      lendable: 300n,
      lent: 100n,
      parent: null,
      depth: 0,
    });
    expect(await contract.ledger.find(`${run}-a`)).toMatchObject({
      amount: 100n,
      lendable: 0n,
      lent: 0n,
      parent: run,
      depth: 1,
      state: 'held',
    });
    expect(await contract.failing()).toEqual([]);
  });

  test('it is lent to the last micro-USD and not one more, whatever is available', async () => {
    expect(await lock(`${run}-a`, { parent: run, amount: 301n })).toEqual({
      ok: false,
      reason: 'parent_exhausted',
      available: 300n,
    });
    expect(await lock(`${run}-b`, { parent: run, amount: 299n })).toMatchObject({ ok: true });
    expect(await lock(`${run}-c`, { parent: run, amount: 2n })).toEqual({
      ok: false,
      reason: 'parent_exhausted',
      available: 1n,
    });
    expect(await lock(`${run}-d`, { parent: run, amount: 1n })).toMatchObject({ ok: true });
    expect(await lock(`${run}-e`, { parent: run, amount: 0n })).toMatchObject({ ok: true });
    expect(await contract.ledger.find(run)).toMatchObject({ lent: 300n });
  });

  test('a run can lend although its account has nothing left', async () => {
    await lock(`${run}-rest`, { amount: 600n });
    expect(await lock(`${run}-a`, { parent: run })).toEqual({ ok: true, available: 0n });
  });

  test('a lock that may lend nothing lends nothing', async () => {
    await lock(`${run}-plain`);
    expect(await lock(`${run}-a`, { parent: `${run}-plain`, amount: 1n })).toEqual({
      ok: false,
      reason: 'parent_exhausted',
      available: 0n,
    });
  });

  test('a parent that is resolved, unknown, or of another account is over', async () => {
    const over = { ok: false, reason: 'parent_over', available: 0n };
    expect(await lock(`${run}-a`, { parent: 'unknown' })).toEqual(over);
    expect(await lock(`${run}-b`, { parent: `${run}-b` })).toEqual(over);
    await contract.ledger.transfer({
      id: `fund-other-${turn}`,
      from: treasuryOf('test'),
      to: escrowOf(`other-${turn}`),
      amount: 9n,
      memo: '',
    });
    expect(await lock(`${run}-c`, { parent: run, account: `other-${turn}`, amount: 1n })).toEqual(over);
    expect(await lock(`${run}-d`, { parent: run, account: 'stranger', amount: 1n })).toEqual(over);
    await contract.ledger.release({ id: run, detail: '{}' });
    expect(await lock(`${run}-e`, { parent: run })).toEqual(over);
  });

  test('an id is taken only once, above all else', async () => {
    await lock(`${run}-a`, { parent: run });
    expect(await lock(`${run}-a`, { parent: run })).toEqual({ ok: false, reason: 'duplicate', available: 600n });
    expect(await lock(`${run}-a`, { parent: 'unknown' })).toMatchObject({ reason: 'duplicate' });
    expect(await contract.ledger.find(run)).toMatchObject({ lent: 100n });
  });

  test(`locks go ${LOCK_LEVELS} levels deep and no deeper`, async () => {
    let parent = run;
    for (let level = 2; level <= LOCK_LEVELS; level += 1) {
      const id = `${run}-level-${level}`;
      expect(await lock(id, { parent, lendable: 100n })).toMatchObject({ ok: true });
      parent = id;
    }
    expect(await lock(`${run}-level-9`, { parent, amount: 1n })).toEqual({
      ok: false,
      reason: 'too_deep',
      available: 100n,
    });
    expect(await contract.ledger.find(parent)).toMatchObject({ depth: LOCK_LEVELS - 1, lent: 0n });
    expect(await balance()).toEqual({ available: 600n, locked: 400n });
    expect(await contract.failing()).toEqual([]);
  });

  test("a child counts against its parent's budget, whatever budget it names", async () => {
    const budget = { id: `budget-${turn}`, limit: 400n };
    await lock(`${run}-b`, { amount: 400n, lendable: 400n, budgets: [budget] });
    expect(await lock(`${run}-c`, { parent: `${run}-b`, budgets: [{ id: `other-${turn}`, limit: 0n }] })).toMatchObject(
      {
        ok: true,
      },
    );
    expect(await contract.ledger.find(`${run}-c`)).toMatchObject({ budgets: [budget.id] });
    expect(await contract.ledger.budget(budget.id)).toEqual({ spent: 0n, locked: 400n });
    expect(await contract.ledger.budget(`other-${turn}`)).toEqual({ spent: 0n, locked: 0n });
    expect(await contract.failing()).toEqual([]);
  });

  test('parent and child may be asked for in one breath, in that order', async () => {
    const id = `${run}-new`;
    const together = await Promise.all([
      lock(`${id}-early`, { parent: id }),
      lock(id, { amount: 200n, lendable: 150n }),
      lock(`${id}-a`, { parent: id }),
      lock(`${id}-b`, { parent: id }),
    ]);
    expect(together).toEqual([
      { ok: false, reason: 'parent_over', available: 0n },
      { ok: true, available: 400n },
      { ok: true, available: 400n },
      { ok: false, reason: 'parent_exhausted', available: 50n },
    ]);
    expect(await contract.ledger.find(id)).toMatchObject({ lent: 100n });
  });

  test('the children of a lock are told in the order of their creation, and no grandchildren', async () => {
    await lock(`${run}-a`, { parent: run, lendable: 50n });
    await lock(`${run}-b`, { parent: run, amount: 7n });
    await lock(`${run}-a-deep`, { parent: `${run}-a`, amount: 5n });
    await contract.ledger.release({ id: `${run}-b`, detail: '{}' });
    const told = await contract.ledger.children(run);
    expect(told.map(({ id, state }) => [id, state])).toEqual([
      [`${run}-a`, 'held'],
      [`${run}-b`, 'released'],
    ]);
    expect(told[0]).toEqual(await contract.ledger.find(`${run}-a`));
    expect((await contract.ledger.children(run, 1)).map(({ id }) => id)).toEqual([`${run}-a`]);
    expect(await contract.ledger.children('unknown')).toEqual([]);
  });
});
