import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { escrowOf, FEES, OPERATOR, treasuryOf } from '#billing';
import type { NewWithdrawal, Withdrawal } from '../../../src/billing/chains/withdrawal-rows.ts';
import { solanaMoney, type SolanaMoney } from '../../support/chain/money-chain.ts';
import {
  openMoneyWorldOn,
  type GatewayOptions,
  type MoneyGateway,
  type MoneyWorld,
  type Payer,
} from '../../support/chain/money-world.ts';
import { createMortal, deathsAt, type Death } from '../../support/chain/mortal.ts';
import { startRpcFaultProxy, type RpcFaultProxy } from '../../support/chain/rpc-fault-proxy.ts';
import { closeAccount, newPayer } from '../../support/chain/solana-wallet.ts';
import { whileBlocksCome } from '../../support/chain/while-blocks-come.ts';

/**
 * The fee of a token account is kept of those payouts alone that open one. What was told once does not grow. Gateways
 * work here when they are told to, so that the account changes between two certain steps.
 */
const DEEP = process.env['TOLLGATE_DEEP'] === '1';
const PAID_IN = 60_000_000n;
const AMOUNT = 1_000_000n;
const PLAIN = 50_000n;
const FEE = 250_000n;

let world: MoneyWorld<SolanaMoney>;
let proxy: RpcFaultProxy;
let payer: Payer;
beforeAll(async () => {
  const chain = await solanaMoney();
  world = await openMoneyWorldOn(chain, DEEP ? 'postgres' : 'sqlite');
  proxy = await startRpcFaultProxy(chain.url);
  payer = await world.payer();
  const gateway = await world.gateway();
  const { payment } = await gateway.sign(payer, PAID_IN);
  await gateway.chains.deposits.take(payment, { account: payer.account, request: null });
  await world.settle(gateway);
  await gateway.close();
});
afterEach(() => proxy.heal());
afterAll(async () => {
  await proxy.stop();
  await world.close();
});

const gatewayWith = (tokenAccountFee: bigint, more: GatewayOptions = {}) =>
  world.gateway({
    background: false,
    opensAccounts: true,
    policy: { withdrawalFee: PLAIN, tokenAccountFee },
    ...more,
  });

let withdrawals = 0;
const askedOf = (address: string, more: Partial<NewWithdrawal> = {}): NewWithdrawal => ({
  id: `opening-${(withdrawals += 1)}`,
  network: world.network,
  account: payer.account,
  source: escrowOf(payer.account),
  address,
  amount: AMOUNT,
  handedOut: false,
  ...more,
});

const rowOf = async ({ chains }: MoneyGateway, id: string) => (await chains.withdrawalRows.find(id))!;
const carryOn = async (gateway: MoneyGateway, id: string) =>
  gateway.chains.withdrawals.carryOn(await rowOf(gateway, id));

/** Steps and blocks until it is at an end; then the books are right. */
async function finish(gateway: MoneyGateway, id: string): Promise<Withdrawal> {
  const ended = async () => {
    await carryOn(gateway, id);
    return ['paid', 'returned'].includes((await rowOf(gateway, id)).state);
  };
  await whileBlocksCome(world, ended, async () => JSON.stringify((await rowOf(gateway, id)).state));
  await world.settle(gateway);
  return rowOf(gateway, id);
}

const lamports = () => world.chain.twin.chain.account(world.treasury)!.lamports;
const RENT = 2_039_280n;
/** What transactions cost. */
const GAS_MAX = 100_000n;

interface Case {
  /** Whether the wallet has a token account at first. */
  readonly has: boolean;
  readonly dies: Death | null;
  /** What happens to the account, or to what was signed, once the process is dead. */
  readonly meanwhile: 'nothing' | 'opened' | 'closed' | 'expired';
  /** That is kept for the account in the end. */
  readonly kept: bigint;
}
const at = (name: string) => deathsAt([name]) as [Death, Death];
const [beforeSign, afterSign] = at('signWithdrawal');
const [beforeSend, afterSend] = at('broadcast');
const BY_DAY: Case[] = [
  { has: false, dies: null, meanwhile: 'nothing', kept: FEE },
  { has: false, dies: beforeSign, meanwhile: 'nothing', kept: 2n * FEE },
  { has: false, dies: afterSign, meanwhile: 'opened', kept: 0n },
  { has: true, dies: afterSign, meanwhile: 'closed', kept: 2n * FEE },
  { has: false, dies: afterSign, meanwhile: 'expired', kept: FEE },
];
const OTHERS: Case[] = [
  { has: true, dies: null, meanwhile: 'nothing', kept: 0n },
  { has: false, dies: beforeSign, meanwhile: 'opened', kept: 0n },
  { has: true, dies: beforeSign, meanwhile: 'nothing', kept: 0n },
  { has: true, dies: beforeSign, meanwhile: 'closed', kept: 2n * FEE },
  { has: false, dies: afterSign, meanwhile: 'nothing', kept: FEE },
  { has: true, dies: afterSign, meanwhile: 'nothing', kept: 0n },
  { has: false, dies: beforeSend, meanwhile: 'opened', kept: 0n },
  { has: false, dies: beforeSend, meanwhile: 'nothing', kept: FEE },
  { has: true, dies: beforeSend, meanwhile: 'closed', kept: 2n * FEE },
  { has: false, dies: afterSend, meanwhile: 'nothing', kept: FEE },
  ...deathsAt(['transfer withdrawal-paid', 'transfer withdrawal-fee', 'markPaid']).map((dies): Case => ({
    has: false,
    dies,
    meanwhile: 'nothing',
    kept: FEE,
  })),
];

test.each(DEEP ? [...BY_DAY, ...OTHERS] : BY_DAY)(
  'an account that is there: $has, a death $dies.when $dies.at, then $meanwhile: $kept are kept for it',
  async ({ has, dies, meanwhile, kept }) => {
    const { twin } = world.chain;
    const owner = await newPayer();
    if (has) twin.fundUsdc(owner.address, 0n);
    const asked = askedOf(owner.address);
    const [source, fees, gas] = [await world.available(asked.source), await world.available(FEES), lamports()];

    const mortal = createMortal(dies, proxy);
    const first = await gatewayWith(FEE, { rpcUrl: proxy.url, through: mortal.through });
    const begun = (async () => {
      expect(await first.chains.withdrawals.request(asked)).toMatchObject({ state: 'queued', fee: PLAIN });
      await finish(first, asked.id);
    })();
    if (dies === null) await begun;
    else await expect(begun).rejects.toThrow();
    await first.close();
    proxy.heal();

    if (meanwhile === 'opened') twin.fundUsdc(owner.address, 0n);
    if (meanwhile === 'closed') await closeAccount(twin, owner);
    if (meanwhile === 'expired') twin.advance(400);
    // The operator asks twice as much by now.
    const second = await gatewayWith(2n * FEE, { aheadMs: 60_000 });
    const fee = PLAIN + kept;
    expect(await finish(second, asked.id)).toMatchObject({ state: 'paid', amount: AMOUNT, fee });
    await second.close();
    expect(await world.balanceOf(owner.address)).toBe(AMOUNT - fee);
    expect(await world.available(FEES)).toBe(fees + fee);
    expect(await world.available(asked.source)).toBe(source - AMOUNT);
    // The treasury paid for an account where the fee of one was kept, and nowhere else.
    const spent = gas - lamports() - (kept > 0n ? RENT : 0n);
    expect(spent > 0n && spent < GAS_MAX, `${spent} lamports`).toBe(true);
  },
);

test.each(DEEP ? at('resignWithdrawal') : at('resignWithdrawal').slice(1))(
  'a death $when it is signed anew, because somebody opened the account, keeps nothing for it',
  async (dies) => {
    const { twin } = world.chain;
    const owner = await newPayer();
    const asked = askedOf(owner.address);
    const fees = await world.available(FEES);
    for (const death of [afterSign, dies]) {
      const mortal = createMortal(death, proxy);
      const mortalGateway = await gatewayWith(FEE, { rpcUrl: proxy.url, through: mortal.through, aheadMs: 60_000 });
      const begun = mortalGateway.chains.withdrawals.request(asked).then(() => finish(mortalGateway, asked.id));
      await expect(begun).rejects.toThrow();
      expect(mortal.steps.at(-1)).toBe(death.at);
      await mortalGateway.close();
      proxy.heal();
      twin.fundUsdc(owner.address, 0n);
    }
    const gateway = await gatewayWith(FEE, { aheadMs: 60_000 });
    expect(await rowOf(gateway, asked.id)).toMatchObject({ fee: dies.when === 'after' ? PLAIN : PLAIN + FEE });
    expect(await finish(gateway, asked.id)).toMatchObject({ state: 'paid', fee: PLAIN });
    expect(await world.balanceOf(owner.address)).toBe(AMOUNT - PLAIN);
    expect(await world.available(FEES)).toBe(fees + PLAIN);
    await gateway.close();
  },
);

test('what is not more than both fees is given back, and says so; one micro-USD more is paid', async () => {
  const gateway = await gatewayWith(FEE);
  const [source, fees] = [await world.available(escrowOf(payer.account)), await world.available(FEES)];
  for (const handedOut of [false, true]) {
    const asked = askedOf((await newPayer()).address, { amount: PLAIN + FEE, handedOut });
    await gateway.chains.withdrawals.request(asked);
    expect(await finish(gateway, asked.id)).toMatchObject({
      state: 'returned',
      reason: expect.stringMatching(/has no token account .* costs a fee of 0\.25 USDC, and only 0\.25 USDC were/),
    });
  }
  expect(await world.available(escrowOf(payer.account))).toBe(source);
  expect(await world.available(FEES)).toBe(fees);
  const { address } = await newPayer();
  const asked = askedOf(address, { amount: PLAIN + FEE + 1n });
  await gateway.chains.withdrawals.request(asked);
  expect(await finish(gateway, asked.id)).toMatchObject({ state: 'paid', fee: PLAIN + FEE });
  expect(await world.balanceOf(address)).toBe(1n);
  await gateway.close();
});

test('one that its owner submits pays as much less', async () => {
  const { twin } = world.chain;
  const gateway = await gatewayWith(FEE);
  const { address } = await newPayer();
  const asked = askedOf(address, { handedOut: true });
  await gateway.chains.withdrawals.request(asked);
  await carryOn(gateway, asked.id);
  const { state, signed } = await rowOf(gateway, asked.id);
  expect([state, twin.chain.tokens(address)]).toEqual(['signed', 0n]);
  const { transaction } = JSON.parse(signed!.text) as { readonly transaction: string };
  twin.chain.take(Uint8Array.from(Buffer.from(transaction, 'base64')), 0);
  expect(await finish(gateway, asked.id)).toMatchObject({ state: 'paid', fee: PLAIN + FEE });
  expect(twin.chain.tokens(address)).toBe(AMOUNT - PLAIN - FEE);
  await gateway.close();
});

test('the operator pays himself no fee', async () => {
  const gateway = await gatewayWith(FEE);
  const fees = await world.available(FEES);
  const { address } = await newPayer();
  const asked = askedOf(address, { account: OPERATOR, source: FEES, amount: 1n });
  await gateway.chains.withdrawals.request(asked);
  expect(await finish(gateway, asked.id)).toMatchObject({ state: 'paid', fee: 0n });
  expect([await world.balanceOf(address), await world.available(FEES)]).toEqual([1n, fees - 1n]);
  await gateway.close();
});

test('of two that sign at once the fee of the one that is kept holds', async () => {
  const other = await gatewayWith(FEE);
  const owner = await newPayer();
  const asked = askedOf(owner.address);
  let isFirst = true;
  const overtaken = await gatewayWith(FEE, {
    through: {
      ledger: (real) => real,
      database: (real) => ({
        ...real,
        async query(statement, params) {
          if (isFirst && statement.name.endsWith('.signWithdrawal')) {
            isFirst = false;
            world.chain.twin.fundUsdc(owner.address, 0n);
            await carryOn(other, asked.id);
          }
          return real.query(statement, params);
        },
      }),
    },
  });
  await overtaken.chains.withdrawals.request(asked);
  expect(await finish(overtaken, asked.id)).toMatchObject({ state: 'paid', fee: PLAIN });
  expect(isFirst).toBe(false);
  expect(await world.balanceOf(owner.address)).toBe(AMOUNT - PLAIN);
  await overtaken.close();
  await other.close();
});

test('one that is signed anew for more waits until the treasury has it', async () => {
  const { twin } = world.chain;
  const owner = await newPayer();
  const asked = askedOf(owner.address);
  const mortal = createMortal(afterSign, proxy);
  const dead = await gatewayWith(FEE, { rpcUrl: proxy.url, through: mortal.through });
  await dead.chains.withdrawals.request(asked);
  await expect(carryOn(dead, asked.id)).rejects.toThrow();
  await dead.close();
  proxy.heal();

  const gateway = await gatewayWith(FEE, { aheadMs: 60_000 });
  const all = await gateway.chains.withdrawals.uncommitted(world.network);
  expect(all).toBe(-(await world.available(treasuryOf(world.network))) - (AMOUNT - PLAIN - FEE));
  const own = await world.payer(1n);
  await gateway.chains.withdrawals.requestOwn({
    id: 'emptied',
    network: world.network,
    address: own.address,
    amount: all,
  });
  const gone = async () => {
    await carryOn(gateway, 'emptied');
    return (await rowOf(gateway, 'emptied')).state === 'paid';
  };
  await whileBlocksCome(world, gone, () => 'not moved');
  twin.fundUsdc(owner.address, 0n);
  const { signed } = await rowOf(gateway, asked.id);
  for (let looks = 0; looks < 5; looks += 1) {
    await carryOn(gateway, asked.id);
    await world.finalize();
  }
  expect(await rowOf(gateway, asked.id)).toMatchObject({ state: 'signed', signed, fee: PLAIN + FEE });

  const more = await world.payer(FEE);
  const { payment } = await gateway.sign(more, FEE);
  await gateway.chains.deposits.take(payment, { account: more.account, request: null });
  await world.finalize();
  expect(await finish(gateway, asked.id)).toMatchObject({ state: 'paid', fee: PLAIN });
  expect(await world.balanceOf(owner.address)).toBe(AMOUNT - PLAIN);
  await gateway.close();
});
