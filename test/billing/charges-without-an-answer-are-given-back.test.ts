import { describe, expect, it, onTestFinished } from 'vitest';
import { earningsOf, escrowOf, FEES, OPERATOR_TREASURY, treasuryOf } from '#billing';
import { priceId } from '#billing/amounts';
import { audit, createGiveBack, createLedger, createPriceBook, createRefunds } from '#billing/compose';
import { ENGINES, openEngine, type EngineName } from '../support/engines.ts';

const HOUR_MS = 3_600_000;
const FUNDS = 10_000n;
const CHARGE = 100n;
const rates = { call: CHARGE * 1_000_000n };
const price = { id: priceId('p', 'acme/model', rates), rates, provider: 'p', service: 'acme/model' };

async function world(engine: EngineName) {
  const { database, dispose } = await openEngine(engine);
  const ledger = await createLedger({ database });
  await createPriceBook(database).remember([price]);
  await ledger.transfer({ id: 'fund', from: treasuryOf('test'), to: escrowOf('a'), amount: FUNDS, memo: '' });
  onTestFinished(async () => {
    expect((await audit(database)).checks.filter(({ ok }) => !ok)).toEqual([]);
    await ledger.close();
    await dispose();
  });
  const told: string[] = [];
  const giveBack = createGiveBack({
    ledger,
    refunds: createRefunds(database, ledger),
    onGivenBack: ({ id, account }, amount) => void told.push(`${id} of ${account}: ${amount}`),
  });
  const lock = async (id: string, more: { parent?: string; lendable?: bigint; detail?: string } = {}) => {
    const lockRequest = { id, account: 'a', amount: 500n, prices: [price.id], expiresAt: Date.now() + HOUR_MS };
    expect(await ledger.lock({ ...lockRequest, detail: '{}', ...more })).toMatchObject({ ok: true });
  };
  const settle = (id: string, charge = CHARGE) =>
    ledger.settle({
      id,
      price: price.id,
      provider: 'p',
      charge,
      draw: false,
      feeBps: 1_000,
      usage: '{"call":1}',
      detail: '{}',
    });
  const available = async (name: string) => (await ledger.balance(name))?.available ?? 0n;
  return { ledger, giveBack, told, lock, settle, available };
}

describe.each(ENGINES)('on %s', (engine) => {
  it('a charge whose answer is lost is given back once, by the operator alone', async () => {
    const { giveBack, told, lock, settle, available } = await world(engine);
    await lock('gen-1');
    await settle('gen-1');
    const [earned, fees] = [await available(earningsOf('p')), await available(FEES)];
    expect(earned + fees).toBe(CHARGE);
    for (let times = 0; times < 3; times += 1)
      expect(await giveBack('gen-1')).toEqual({ amount: CHARGE, openUntil: null });
    expect(told).toEqual(['gen-1 of a: 100']);
    expect(await available(escrowOf('a'))).toBe(FUNDS);
    expect(await available(OPERATOR_TREASURY)).toBe(-CHARGE);
    expect([await available(earningsOf('p')), await available(FEES)]).toEqual([earned, fees]);
  });

  it('what was not charged has nothing to give back', async () => {
    const { ledger, giveBack, told, lock, settle } = await world(engine);
    await lock('gen-1');
    await ledger.release({ id: 'gen-1', detail: '{}' });
    await lock('gen-2');
    await settle('gen-2', 0n);
    for (const id of ['gen-1', 'gen-2', 'gen-never'])
      expect(await giveBack(id)).toEqual({ amount: 0n, openUntil: null });
    expect(told).toEqual([]);
  });

  it('a call that still holds its lock may be charged until the lock expires, and its calls are not given back', async () => {
    const { ledger, giveBack, told, lock, settle } = await world(engine);
    await lock('gen-1', { lendable: 500n, detail: '{"run":true}' });
    await lock('gen-2', { parent: 'gen-1' });
    await settle('gen-2');
    const { expiresAt } = (await ledger.find('gen-1'))!;
    expect(await giveBack('gen-1')).toEqual({ amount: 0n, openUntil: expiresAt });
    expect(told).toEqual([]);
  });

  it('of a run all its calls are given back; of a call of an agent none that the agent made', async () => {
    const { ledger, giveBack, told, lock, settle, available } = await world(engine);
    await lock('gen-1', { lendable: 500n, detail: '{"run":true}' });
    await lock('gen-3', { lendable: 400n });
    for (const parent of ['gen-1', 'gen-3']) {
      await ledger.lock({
        id: `under ${parent}`,
        account: 'a',
        amount: CHARGE,
        prices: [price.id],
        expiresAt: Date.now() + HOUR_MS,
        detail: '{}',
        parent,
      });
      await settle(`under ${parent}`);
    }
    await ledger.release({ id: 'gen-1', detail: '{}' });
    await settle('gen-3');
    expect(await giveBack('gen-1')).toEqual({ amount: CHARGE, openUntil: null });
    expect(await giveBack('gen-3')).toEqual({ amount: CHARGE, openUntil: null });
    expect(told).toEqual(['under gen-1 of a: 100', 'gen-3 of a: 100']);
    expect(await available(escrowOf('a'))).toBe(FUNDS - CHARGE);
  });
});
