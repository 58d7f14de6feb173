import type { Hex } from 'viem';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Chain, Incoming } from '../../../src/billing/chains/chain.ts';
import { carryOutCall, deployEvmToken, transferFromCall } from '../../support/chain/evm-token.ts';
import { startEvmWorld, type EvmWorld } from '../../support/chain/evm-world.ts';

/*
 * Everything that came into the treasury and is final is told once and in order, with the signed payment that it
 * carried out.
 */

const deep = process.env['TOLLGATE_DEEP'] === '1';
let world: EvmWorld;

beforeAll(async () => {
  world = await startEvmWorld();
});
afterAll(() => world.stop());

/** All pages from a cursor on, in one. */
async function readAll(
  chain: Chain,
  cursor: string,
): Promise<{ readonly events: Incoming[]; readonly cursor: string; readonly height: bigint }> {
  const events: Incoming[] = [];
  for (;;) {
    const page = await chain.incoming(cursor);
    events.push(...page.events);
    cursor = page.cursor;
    if (!page.more) return { events, cursor, height: page.height };
  }
}

const settle = () => world.anvil.mine(2);

test('the chain begins at what is final now', async () => {
  const payer = await world.payer();
  await world.token.transfer(payer, world.treasury.address, 5n);
  await settle();
  const page = await world.chain.incoming(null);
  expect(page).toMatchObject({ events: [], more: false, cursor: expect.stringMatching(/^\d+\/0x[0-9a-f]{64}$/) });
  expect(await world.chain.incoming(page.cursor)).toEqual(page);
  expect(await world.chain.balanceAt(page.cursor)).toBe(5n);
});

test('a plain transfer, and a payment whoever carried it out, once they are final', async () => {
  const { cursor } = await world.chain.incoming(null);
  const payer = await world.payer();
  const plain = await world.token.transfer(payer, world.treasury.address, 700n);
  const payment = await world.payment(payer, 900n);
  const { transaction } = await world.mined(world.chain.submit(payment));
  const signed = await world.token.authorize(payer, { to: world.treasury.address, value: 1100n });
  const elsewhere = await world.token.carryOut(signed);
  expect((await world.chain.incoming(cursor)).events.map(({ amount }) => amount)).toEqual([700n]);
  await settle();
  const page = await readAll(world.chain, cursor);
  const common = { final: true, sender: payer.address, memo: null };
  const id = `eip155:84532/${world.token.address}/${payer.address}/${signed.authorization['nonce']}`.toLowerCase();
  expect(page.events).toEqual([
    expect.objectContaining({
      ...common,
      id: expect.stringMatching(new RegExp(`^${plain}:\\d+$`)),
      transaction: plain,
      amount: 700n,
      paymentId: null,
      confirmations: 5,
    }),
    expect.objectContaining({ ...common, transaction, amount: 900n, paymentId: payment.id, confirmations: 4 }),
    expect.objectContaining({ ...common, transaction: elsewhere, amount: 1100n, paymentId: id, confirmations: 3 }),
  ]);
  const found = await world.chain.find(payment, null);
  const { id: eventId, height } = page.events[1]!;
  expect(found).toMatchObject({ state: 'settled', event: { id: eventId, height } });
  expect((await readAll(world.chain, page.cursor)).events).toEqual([]);
});

test('what moves nothing in is nothing: to others, to itself, of zero, and out of the treasury', async () => {
  const payer = await world.payer();
  const { cursor } = await world.chain.incoming(null);
  await world.token.transfer(payer, `0x${'12'.repeat(20)}`, 5n);
  await world.token.transfer(payer, world.treasury.address, 0n);
  await world.token.mint(world.treasury.address, 50n);
  await world.token.transfer(world.treasury, world.treasury.address, 10n);
  await world.token.transfer(world.treasury, payer.address, 20n);
  await settle();
  const { events, cursor: end } = await readAll(world.chain, cursor);
  expect(events.map(({ amount, sender }) => [amount, sender])).toEqual([[50n, `0x${'00'.repeat(20)}`]]);
  const grown = (await world.chain.balanceAt(end))! - (await world.chain.balanceAt(cursor))!;
  expect(grown).toBe(30n);
});

test('several movements in one transaction are each their own, and each authorization has its transfer', async () => {
  const { cursor } = await world.chain.incoming(null);
  const [one, other] = [await world.payer(), await world.payer()];
  const { address: treasury } = world.treasury;
  const authorize = async (from: typeof one, to: Hex, value: bigint) => world.token.authorize(from, { to, value });
  const [first, toOthers, second, third] = [
    await authorize(one, treasury, 100n),
    await authorize(one, `0x${'12'.repeat(20)}`, 100n),
    await authorize(other, treasury, 100n),
    await authorize(one, treasury, 100n),
  ];
  const target = world.token.address;
  const transaction = await world.token.batch(
    [first, toOthers, second, third].map(({ authorization, signature }) => ({
      target,
      data: carryOutCall(authorization, signature),
    })),
  );
  await settle();
  const { events } = await readAll(world.chain, cursor);
  expect(events.map(({ transaction, amount }) => [transaction, amount])).toEqual(
    [1, 2, 3].map(() => [transaction, 100n]),
  );
  expect(new Set(events.map(({ id }) => id)).size).toBe(3);
  const idOf = ({ authorization }: typeof first) =>
    `eip155:84532/${target}/${authorization['from']}/${authorization['nonce']}`.toLowerCase();
  expect(events.map(({ paymentId }) => paymentId)).toEqual([first, second, third].map(idOf));
  const requirements = await world.chain.requirements(100n, null);
  for (const signed of [first, second, third]) {
    const payment = world.chain.read({ x402Version: 2, accepted: requirements, payload: signed });
    const event = events.find(({ paymentId }) => paymentId === payment.id)!;
    expect(await world.chain.find(payment, null)).toMatchObject({
      state: 'settled',
      event: { id: event.id, amount: 100n },
    });
  }
});

test('a plain transfer of the same payer beside its authorization is not taken for it', async () => {
  const { cursor } = await world.chain.incoming(null);
  const payer = await world.payer();
  await world.token.allowBatch(payer);
  const { address: treasury } = world.treasury;
  const plain = (amount: bigint) => transferFromCall(payer.address, treasury, amount);
  const signed = await world.token.authorize(payer, { to: treasury, value: 100n });
  const calls = [plain(300n), carryOutCall(signed.authorization, signed.signature), plain(500n)];
  await world.token.batch(calls.map((data) => ({ target: world.token.address, data })));
  await settle();
  const { events } = await readAll(world.chain, cursor);
  expect(events.map(({ amount, paymentId }) => [amount, paymentId === null])).toEqual([
    [300n, true],
    [100n, false],
    [500n, true],
  ]);
  const payment = world.chain.read({
    x402Version: 2,
    accepted: await world.chain.requirements(100n, null),
    payload: signed,
  });
  expect(await world.chain.find(payment, null)).toMatchObject({
    state: 'settled',
    event: { id: events[1]!.id, amount: 100n },
  });
});

test('the log of another contract makes no plain transfer an authorization', async () => {
  const { cursor } = await world.chain.incoming(null);
  const payer = await world.payer();
  await world.token.allowBatch(payer);
  const { address: treasury } = world.treasury;
  const other = await deployEvmToken(world.anvil, { hostile: true });
  await other.setMode('moves-nothing');
  const { authorization, signature } = await other.authorize(payer, { to: treasury, value: 100n });
  await world.token.batch([
    { target: other.address, data: carryOutCall(authorization, signature) },
    { target: world.token.address, data: transferFromCall(payer.address, treasury, 100n) },
  ]);
  await settle();
  expect((await readAll(world.chain, cursor)).events).toMatchObject([{ amount: 100n, paymentId: null }]);
});

test('many movements come in several pages, without a gap or a repetition', async () => {
  const { cursor } = await world.chain.incoming(null);
  const payer = await world.payer();
  const { address: treasury } = world.treasury;
  const target = world.token.address;
  // 200 is in the middle of a block.
  const perBlock = 15;
  const count = perBlock * (deep ? 150 : 16);
  for (let made = 0; made < count; made += perBlock) {
    const signed = await Promise.all(
      Array.from({ length: perBlock }, () => world.token.authorize(payer, { to: treasury, value: 1n })),
    );
    await world.token.batch(
      signed.map(({ authorization, signature }) => ({ target, data: carryOutCall(authorization, signature) })),
    );
  }
  await settle();
  const first = await world.chain.incoming(cursor);
  expect(first.more).toBe(true);
  expect(first.events.length).toBe(210);
  const { events, cursor: end } = await readAll(world.chain, cursor);
  expect(events.length).toBe(count);
  expect(new Set(events.map(({ id }) => id)).size).toBe(count);
  expect(new Set(events.map(({ paymentId }) => paymentId)).size).toBe(count);
  expect((await world.chain.balanceAt(end))! - (await world.chain.balanceAt(cursor))!).toBe(BigInt(count));
});

test('a cursor that is none is refused', async () => {
  await expect(world.chain.incoming('12')).rejects.toThrow('Not a cursor of an EVM chain: "12"');
  await expect(world.chain.incoming(`999999/0x${'12'.repeat(32)}`)).rejects.toMatchObject({ name: 'ChainUnavailable' });
});
