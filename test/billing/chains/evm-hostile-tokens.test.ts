import { afterAll, beforeAll, expect, test } from 'vitest';
import { startEvmWorld, type EvmWorld } from '../../support/chain/evm-world.ts';

/*
 * Never is more credited than arrived, whatever a token says.
 */

let world: EvmWorld;

beforeAll(async () => {
  world = await startEvmWorld({ token: { hostile: true } });
});
afterAll(() => world.stop());

test.each(['moves-nothing', 'claims-transfer'] as const)(
  'a token that %s: the payment is open, and lost once that is final',
  async (mode) => {
    const payer = await world.payer();
    const { cursor } = await world.chain.incoming(null);
    const payment = await world.payment(payer);
    await world.token.setMode(mode);
    const { transaction } = await world.mined(world.chain.submit(payment));
    expect(await world.chain.find(payment, transaction)).toEqual({ state: 'open' });
    await world.anvil.mine(2);
    expect(await world.chain.find(payment, null)).toEqual({
      state: 'lost',
      reason: expect.stringMatching(/pays nothing to|nothing arrived/),
    });
    expect((await world.chain.incoming(cursor)).events).toEqual([]);
    await world.token.setMode('honest');
  },
);

test.each([
  ['hidden-fee', 900_000n],
  ['shown-fee', 900_000n],
] as const)('a token with a %s: what arrived is credited', async (mode, arrived) => {
  const payer = await world.payer();
  await world.anvil.mine(2);
  const { cursor } = await world.chain.incoming(null);
  const before = await world.held();
  const payment = await world.payment(payer);
  await world.token.setMode(mode);
  const { transaction } = await world.mined(world.chain.submit(payment));
  await world.anvil.mine(2);
  expect((await world.held()) - before).toBe(arrived);
  expect(await world.chain.find(payment, transaction)).toMatchObject({ state: 'settled', event: { amount: arrived } });
  expect((await world.chain.incoming(cursor)).events).toMatchObject([{ amount: arrived, paymentId: payment.id }]);
  await world.token.setMode('honest');
});

test('two payments of one block share what arrived, and honest blocks beside it are whole', async () => {
  const payer = await world.payer();
  await world.anvil.mine(2);
  const { cursor } = await world.chain.incoming(null);
  const before = await world.held();
  const honest = await world.payment(payer, 500n);
  await world.mined(world.chain.submit(honest));
  await world.token.setMode('hidden-fee');
  const [one, other] = [await world.payment(payer, 1_000_000n), await world.payment(payer, 3_000_000n)];
  await world.anvil.setAutomine(false);
  await world.chain.submit(one);
  await world.chain.submit(other);
  await world.anvil.mine(1);
  await world.anvil.setAutomine(true);
  await world.anvil.mine(2);
  const { events } = await world.chain.incoming(cursor);
  expect(events.map(({ amount }) => amount)).toEqual([500n, 900_000n, 2_700_000n]);
  expect(await world.chain.find(other, null)).toMatchObject({ state: 'settled', event: { amount: 2_700_000n } });
  expect((await world.held()) - before).toBe(3_600_500n);
  await world.token.setMode('honest');
});

test('a transfer that returns false moved nothing, and nothing came', async () => {
  const payer = await world.payer();
  await world.anvil.mine(2);
  const { cursor } = await world.chain.incoming(null);
  await world.token.setMode('returns-false');
  await world.token.transfer(payer, world.treasury.address, 1_000_000n);
  await world.anvil.mine(2);
  expect((await world.chain.incoming(cursor)).events).toEqual([]);
  await world.token.setMode('honest');
});

test('a payout that the token carries out for less is not paid', async () => {
  await world.token.mint(world.treasury.address, 10_000_000n);
  const payout = { id: 'w-shown', to: (await world.payer()).address, amount: 1_000_000n };
  const signed = await world.chain.sign(payout, null);
  await world.token.setMode('shown-fee');
  const { transaction } = await world.mined(world.chain.send(payout, signed));
  expect(await world.chain.findPayout(payout, signed, transaction)).toEqual({ state: 'open' });
  await world.anvil.mine(2);
  expect(await world.chain.findPayout(payout, signed, transaction)).toEqual({
    state: 'lost',
    reason: expect.stringContaining('does not pay it'),
  });
  await world.token.setMode('honest');
});
