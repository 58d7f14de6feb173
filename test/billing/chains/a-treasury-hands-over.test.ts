import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { escrowOf, OPERATOR_TREASURY } from '#billing';
import { createActRows } from '../../../src/billing/chains/act-rows.ts';
import { createDepositRows } from '../../../src/billing/chains/deposit-rows.ts';
import { createEvmChain } from '../../../src/billing/chains/evm/evm-chain.ts';
import { createHandoverCare } from '../../../src/billing/chains/handover.ts';
import { createWithdrawalRows } from '../../../src/billing/chains/withdrawal-rows.ts';
import { evmMoney, solanaMoney } from '../../support/chain/money-chain.ts';
import { openMoneyWorldOn, type MoneyGateway, type MoneyWorld, type Payer } from '../../support/chain/money-world.ts';
import { adHoc } from '../../support/ad-hoc.ts';
import { createMortal, deathsAt } from '../../support/chain/mortal.ts';
import { startRpcFaultProxy, type RpcFaultProxy } from '../../support/chain/rpc-fault-proxy.ts';
import { whileBlocksCome } from '../../support/chain/while-blocks-come.ts';

const DEEP = process.env['TOLLGATE_DEEP'] === '1';
const STEPS = [
  'beginHandover',
  'transfer opening',
  'insertAct',
  'insertWithdrawal',
  'transfer withdrawal',
  'signWithdrawal',
  'broadcast',
  'transfer withdrawal-paid',
  'tieArrival',
  'transfer deposit',
  'noteEmpty',
];
const BY_DAY = ['beginHandover'];
const PAID = 50_000_000n;
/** Held by a new treasury before it is one: the operator's. */
const OWN = 7n;

interface Keys {
  readonly address: string;
  readonly key: Uint8Array;
}

describe.each([
  ['an EVM chain', evmMoney],
  ['Solana', solanaMoney],
])('over %s', (_name, startChain) => {
  let world: MoneyWorld;
  let proxy: RpcFaultProxy;
  let payer: Payer;
  let now: Keys;
  beforeAll(async () => {
    const chain = await startChain();
    world = await openMoneyWorldOn(chain);
    proxy = await startRpcFaultProxy(chain.url);
    payer = await world.payer();
    now = { address: chain.treasury, key: chain.setup.treasuryKey };
    const gateway = await world.gateway();
    await pay(gateway, PAID);
    await world.settle(gateway);
    await gateway.close();
  });
  afterAll(async () => {
    await proxy.stop();
    await world.close();
  });

  async function pay(gateway: MoneyGateway, amount: bigint): Promise<void> {
    const { payment } = await gateway.sign(payer, amount);
    await gateway.chains.deposits.take(payment, { account: payer.account, request: null });
  }

  const isEvm = () => world.network.startsWith('eip155:');
  const bookOf = async (gateway: MoneyGateway) => (await gateway.chains.books())[0]!;

  /** Until the treasury before holds nothing, and the books have noted that. */
  async function emptied(gateway: MoneyGateway, isDead = () => false): Promise<void> {
    const isEmpty = async () => {
      if (isDead()) return true;
      const [audit] = await gateway.chains.audit();
      if (audit?.reserves) expect(audit.reserves.held).toBe(audit.reserves.booked);
      return isDead() || ((await bookOf(gateway).catch(() => null))?.previousEmpty ?? false);
    };
    await whileBlocksCome(world, isEmpty, () => `it is not empty: ${gateway.problems.join('; ')}`);
  }

  async function nextTreasury(): Promise<Keys> {
    const next = await world.chain.newTreasury();
    await world.chain.mint(next.address, OWN);
    await world.finalize();
    return next;
  }

  /** The old address is of no more use: the gateway starts without its key. */
  async function end(next: Keys): Promise<void> {
    world.treasuries = [next.address];
    const gateway = await world.gateway({ keys: { treasuryKey: next.key } });
    await world.settle(gateway);
    expect(await bookOf(gateway)).toMatchObject({ treasury: next.address, previous: null, halted: null });
    await gateway.close();
    now = next;
  }

  test('money follows the key, and what still comes to the old address is credited', async () => {
    const before = await world.gateway();
    // Terms of the old address, which are paid when there is a new one.
    const terms = await before.chains.chain(world.network)!.requirements(2_000_000n, null);
    await before.close();
    await expect(world.gateway({ keys: { treasuryKey: now.key, previousKey: now.key } })).rejects.toThrow('to itself');
    const next = await nextTreasury();
    const keys = { treasuryKey: next.key, previousKey: now.key };
    world.treasuries = [next.address, now.address];
    const gateway = await world.gateway({ keys });
    await expect(world.gateway({ keys: { treasuryKey: next.key } })).rejects.toThrow('was not empty');
    const fresh = await gateway.chains.chain(world.network)!.requirements(1n, null);
    expect(fresh.payTo).toBe(next.address);
    // Wallets that build no transaction are given one meanwhile too.
    const draft = await gateway.chains.chain(world.network)!.draft?.(fresh, payer.address);
    expect(typeof draft).toBe(isEvm() ? 'undefined' : 'string');
    await emptied(gateway);
    expect(await world.balanceOf(next.address)).toBe(PAID + OWN);
    expect(await world.available(OPERATOR_TREASURY)).toBe(OWN);

    const payment = gateway.chains.chain(world.network)!.read(await payer.sign(terms));
    await gateway.chains.deposits.take(payment, { account: payer.account, request: null });
    // The payment to the old address may still be undone. A comparison that has seen it finds the address not empty.
    await expect(world.gateway({ keys: { treasuryKey: next.key } })).rejects.toThrow(/is pending|was not empty/);
    await gateway.chains.audit();
    expect(await bookOf(gateway)).toMatchObject({ previous: now.address, previousEmpty: false });
    // Both addresses at once.
    await world.chain.send(payer, [now.address, next.address], 1_000_000n);
    await pay(gateway, 4_000_000n);
    await world.settle(gateway);
    await emptied(gateway);
    await world.settle(gateway);
    const credited = PAID + 8_000_000n;
    expect(await world.available(escrowOf(payer.account))).toBe(credited);
    expect(await world.balanceOf(next.address)).toBe(credited + OWN);

    await gateway.chains.withdrawals.request({
      id: 'after',
      network: world.network,
      account: payer.account,
      source: escrowOf(payer.account),
      address: payer.address,
      amount: 8_000_000n,
      handedOut: false,
    });
    await world.settle(gateway);
    expect(await world.balanceOf(next.address)).toBe(PAID + OWN);

    // A little is not worth the gas of a move, unless it has waited for a day.
    const moves = async () => (await gateway.chains.actRows.list(null, 100)).map(({ id }) => id);
    const made = await moves();
    expect(made).toContain(`handover-${world.network}-${now.address}-1`);
    await world.chain.send(payer, now.address, 999_999n);
    await world.settle(gateway);
    expect(await moves()).toEqual(made);
    expect((await bookOf(gateway)).previousEmpty).toBe(false);
    await world.database.query(adHoc('UPDATE treasury_acts SET created_at = created_at - 86400000'));
    await emptied(gateway);
    expect((await moves()).length).toBe(made.length + 1);
    await gateway.chains.withdrawals.request({
      id: 'the little',
      network: world.network,
      account: payer.account,
      source: escrowOf(payer.account),
      address: payer.address,
      amount: 999_999n,
      handedOut: false,
    });
    await world.settle(gateway);
    expect(gateway.problems.filter((one) => one.includes('stopped'))).toEqual([]);
    await gateway.close();
    // The key of a third treasury is a mistake.
    const other = await world.chain.newTreasury();
    await expect(world.gateway({ keys: { treasuryKey: other.key } })).rejects.toThrow('set both keys');
    await end(next);
  });

  /** What is signed on Solana and not sent ends by itself. */
  const testOfEvm = startChain === evmMoney ? test : () => {};
  testOfEvm('the old key stays as long as something that it has signed may pay, whatever was stolen', async () => {
    const amount = 1_000_000n;
    const { network } = world;
    const before = await world.gateway({ keys: { treasuryKey: now.key } });
    const id = 'handed out';
    await before.chains.withdrawals.request({
      id,
      network,
      account: payer.account,
      source: escrowOf(payer.account),
      address: payer.address,
      amount,
      handedOut: true,
    });
    const stateOf = async ({ chains }: MoneyGateway) => (await chains.withdrawalRows.find(id))?.state;
    while ((await stateOf(before)) !== 'signed') await new Promise((resolve) => setTimeout(resolve, 20));
    await before.close();
    const next = await nextTreasury();
    world.treasuries = [next.address, now.address];
    const gateway = await world.gateway({ keys: { treasuryKey: next.key, previousKey: now.key } });
    while ((await world.balanceOf(now.address)) !== amount || (await world.unfinished()).length > 1) {
      await world.finalize();
      await gateway.chains.audit();
    }
    const thief = createEvmChain({
      ...world.chain.setup,
      treasuryKey: now.key,
      rpcUrl: world.chain.url,
      facilitator: 'in-process',
      finality: null,
      timeoutMs: 5_000,
      now: Date.now,
    });
    const theft = { id: 'theft', to: (await world.payer(0n)).address, amount };
    await thief.send(theft, await thief.sign(theft, null));
    await world.finalize();
    // Looks share the head of the chain for a moment: until it is one after the theft, there is no difference.
    const haltOf = async () => {
      await gateway.chains.audit();
      return (await bookOf(gateway)).halted;
    };
    await expect.poll(haltOf, { timeout: 60_000 }).toContain('the treasury holds');
    const act = { id: 'written off', kind: 'write_off', network, amount, bearer: 'treasury:losses' } as const;
    const none = { toNetwork: null, address: null, sender: null, feeMax: 0n, reference: 'theft' };
    expect(await gateway.chains.acts.request({ ...act, ...none })).toMatchObject({ state: 'done' });
    await gateway.chains.audit();
    expect(await bookOf(gateway)).toMatchObject({ halted: null, previousEmpty: false });
    await expect(world.gateway({ keys: { treasuryKey: next.key } })).rejects.toThrow('was not empty');

    // What comes to the old address pays for it.
    await world.chain.send(payer, now.address, amount);
    while ((await world.unfinished()).length > 1) {
      await world.finalize();
      await gateway.chains.audit();
    }
    await gateway.chains.withdrawals.submit(id);
    await world.settle(gateway);
    // As it looks to who has read the chain up to the block before.
    const { height } = (await gateway.chains.withdrawalRows.find(id))!;
    const begun: unknown[] = [];
    const care = createHandoverCare({
      acts: { begin: async (asked) => void begun.push(asked) },
      actRows: createActRows(world.database, { now: Date.now }),
      withdrawalRows: createWithdrawalRows(world.database, { now: Date.now }),
      depositRows: createDepositRows(world.database, { now: Date.now }),
      now: () => Date.now() + 86_400_000,
    });
    await care.empty(gateway.chains.chain(network)!, async () => ({ amount, height: height! - 1n }));
    expect(begun).toEqual([]);
    await care.empty(gateway.chains.chain(network)!, async () => ({ amount, height: height! }));
    expect(begun).toMatchObject([{ amount }]);
    await emptied(gateway);
    await gateway.close();
    await end(next);
  });

  test('whenever its process dies, the next one goes on; an address may take over a second time', async () => {
    const used: Keys[] = [];
    for (const { at, when } of deathsAt(STEPS.filter((step) => DEEP || BY_DAY.includes(step)))) {
      const own = await world.available(OPERATOR_TREASURY);
      const next = await nextTreasury();
      const keys = { treasuryKey: next.key, previousKey: now.key };
      const mortal = createMortal({ at, when }, proxy);
      const dying = await world.gateway({ keys, rpcUrl: proxy.url, through: mortal.through }).catch(() => null);
      if (dying)
        await emptied(dying, () => mortal.dead).catch((error: unknown) =>
          expect(mortal.dead, String(error)).toBe(true),
        );
      await dying?.close();
      expect(mortal.dead, `${when} ${at}: ${mortal.steps.join(', ')}`).toBe(true);
      proxy.heal();
      world.treasuries = [next.address, now.address];
      const gateway = await world.gateway({ keys, aheadMs: 60_000 });
      await emptied(gateway);
      await world.settle(gateway);
      expect(await world.balanceOf(now.address), `${when} ${at}`).toBe(0n);
      expect(await world.available(OPERATOR_TREASURY)).toBe(own + OWN);
      expect(await world.available('treasury:transit')).toBe(0n);
      await gateway.close();
      await end(next);
      used.push(next);
    }
    const own = await world.available(OPERATOR_TREASURY);
    const again = used[0]!;
    expect(again.address).not.toBe(now.address);
    await world.chain.mint(again.address, OWN);
    await world.finalize();
    world.treasuries = [again.address, now.address];
    const gateway = await world.gateway({ keys: { treasuryKey: again.key, previousKey: now.key } });
    await emptied(gateway);
    await world.settle(gateway);
    expect(await world.available(OPERATOR_TREASURY)).toBe(own + OWN);
    await gateway.close();
    await end(again);
  });
});
