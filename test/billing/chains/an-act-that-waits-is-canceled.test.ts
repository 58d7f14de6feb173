import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { audit, createLedger } from '#billing/compose';
import { FEES, findTransfer, treasuryOf, type Ledger } from '#billing';
import { createActRows, type ActRows, type NewAct } from '../../../src/billing/chains/act-rows.ts';
import { LOSSES } from '../../../src/billing/chains/books.ts';
import { createTreasuryActs } from '../../../src/billing/chains/treasury-acts.ts';
import { ENGINES, openEngine, type OpenedEngine } from '../../support/engines.ts';

// An act that was agreed to waits for the money of its bearer, and holds its network halted. Its operator takes it
// back: then nobody books it any more, and another one can bear the difference.

const AMOUNT = 5n;
const never = (): never => {
  throw new Error('not asked for here');
};

describe.each(ENGINES)('%s', (name) => {
  let engine: OpenedEngine;
  let ledger: Ledger;
  let rows: ActRows;
  beforeAll(async () => {
    engine = await openEngine(name);
    ledger = await createLedger({ database: engine.database });
    rows = createActRows(engine.database, { now: Date.now });
  });
  afterAll(async () => {
    const report = await audit(engine.database);
    await ledger?.close();
    await engine?.dispose();
    expect(report.ok, JSON.stringify(report.checks)).toBe(true);
  });

  /** `around`: what happens before and after each of its transfers; where it throws, the gateway has died. */
  const gateway = (around: { before?: () => Promise<void>; after?: () => Promise<void> } = {}) => {
    const told: string[] = [];
    const acts = createTreasuryActs({
      rows,
      ledger: {
        async transfer(request) {
          await around.before?.();
          const result = await ledger.transfer(request);
          await around.after?.();
          return result;
        },
        balance: ledger.balance,
      },
      transferOf: (id) => findTransfer(engine.database, id),
      compare: async (network) => ({ network, held: 0n, booked: AMOUNT, height: 1n }),
      withdrawals: { requestOwn: never, uncommitted: never, cancel: never, carryOn: never },
      withdrawalRows: { find: never },
      deposits: { attributeOne: never },
      depositRows: { find: never },
      chainOf: () => null,
      moveToOf: () => [],
      onProblem: (level, text) => told.push(`${level}: ${text}`),
    });
    return { ...acts, told };
  };
  const dies = async () => Promise.reject(new Error('it died'));

  let acts = 0;
  const actOf = (asked: Partial<NewAct>): NewAct => ({
    id: `act-${(acts += 1)}`,
    kind: 'write_off',
    network: `eip155:${acts}`,
    amount: AMOUNT,
    bearer: FEES,
    toNetwork: null,
    address: null,
    sender: null,
    feeMax: 0n,
    reference: `reference ${acts}`,
    ...asked,
  });
  let moved = 0;
  const pay = (from: string, to: string) =>
    ledger.transfer({ id: `moved-${(moved += 1)}`, from, to, amount: AMOUNT, memo: 'by this test' });
  const earn = () => pay(treasuryOf('of this test'), FEES);
  const available = async (account: string) => (await ledger.balance(account))?.available ?? 0n;

  /** An act that was agreed to, of a gateway that died before it booked; then its fees were withdrawn. */
  const waiting = async (): Promise<NewAct> => {
    const act = actOf({});
    await earn();
    await expect(gateway({ before: dies }).begin(act)).rejects.toThrow('it died');
    await pay(FEES, treasuryOf('of this test'));
    expect(await rows.find(act.id)).toMatchObject({ state: 'agreed' });
    return act;
  };

  test('it says once that it waits, and another one bears the difference when it is canceled', async () => {
    const act = await waiting();
    const first = gateway();
    await first.carryOn();
    await first.carryOn();
    expect(first.told).toEqual(['warn: an act about a treasury waits for the money of whoever bears it']);
    expect(await rows.find(act.id)).toMatchObject({ state: 'agreed', reason: 'It waits: fees has 0 USDC' });
    const other = actOf({ network: act.network, bearer: LOSSES });
    expect(await rows.insert(other)).toBe(false);

    for (let times = 0; times < 2; times += 1)
      expect(await first.cancel(act.id)).toMatchObject({ state: 'refused', reason: 'Canceled' });
    const lost = await available(LOSSES);
    await first.begin(other);
    expect(await rows.find(other.id)).toMatchObject({ state: 'done' });
    expect(await available(LOSSES)).toBe(lost - AMOUNT);
    await earn();
    await first.carryOn();
    expect(await available(FEES)).toBe(AMOUNT);
    await pay(FEES, treasuryOf('of this test'));
  });

  test('a gateway that books it at the same moment is first, or finds it refused', async () => {
    const booked = await waiting();
    await earn();
    let isFirst = true;
    const late = gateway({
      async before() {
        if (isFirst) await ((isFirst = false), gateway().carryOn());
      },
    });
    await expect(late.cancel(booked.id)).rejects.toMatchObject({
      code: 'unprocessable',
      message: 'It is too late: it is booked',
    });
    expect(await rows.find(booked.id)).toMatchObject({ state: 'done' });
    expect(await available(FEES)).toBe(0n);

    const canceled = await waiting();
    await earn();
    let isNext = true;
    const overtaken = gateway({
      async before() {
        if (isNext) await ((isNext = false), gateway().cancel(canceled.id));
      },
    });
    await overtaken.carryOn();
    expect(await rows.find(canceled.id)).toMatchObject({ state: 'refused', reason: 'Canceled' });
    expect(await available(FEES)).toBe(AMOUNT);
    await pay(FEES, treasuryOf('of this test'));
  });

  test('a gateway that dies while it cancels has canceled', async () => {
    const act = await waiting();
    await expect(gateway({ after: dies }).cancel(act.id)).rejects.toThrow('it died');
    expect(await rows.find(act.id)).toMatchObject({ state: 'agreed' });
    await earn();
    await gateway().carryOn();
    expect(await rows.find(act.id)).toMatchObject({ state: 'refused', reason: 'Canceled' });
    expect(await available(FEES)).toBe(AMOUNT);
    await pay(FEES, treasuryOf('of this test'));
  });

  test('what nobody has agreed to yet is canceled without a trace in the ledger', async () => {
    const act = actOf({});
    await rows.insert(act);
    expect(await gateway({ before: dies }).cancel(act.id)).toMatchObject({ state: 'refused', reason: 'Canceled' });
    await expect(gateway().cancel('nothing')).rejects.toMatchObject({
      param: 'id',
      message: 'There is no act with this id',
    });
  });

  test('acts that wait for long do not stop newer ones', async () => {
    const moves = Array.from({ length: 100 }, () =>
      actOf({ kind: 'move', bearer: null, toNetwork: 'eip155:1', address: '0xa' }),
    );
    for (const { id } of await Promise.all(moves.map(async (move) => (await rows.insert(move), move)))) {
      await rows.move(id, 'requested', 'sending');
      await rows.move(id, 'sending', 'sent');
    }
    const act = await waiting();
    const unbooked = actOf({});
    await rows.insert(unbooked);
    await earn();
    await earn();
    await gateway().carryOn();
    await gateway().carryOnDifference(unbooked.network);
    expect(await rows.find(act.id)).toMatchObject({ state: 'done' });
    expect(await rows.find(unbooked.id)).toMatchObject({ state: 'done' });
  });
});
