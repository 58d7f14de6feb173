import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { escrowOf, OPERATOR_TREASURY } from '#billing';
import { evmMoney, solanaMoney } from '../../support/chain/money-chain.ts';
import { openMoneyWorldOn, type MoneyGateway, type MoneyWorld, type Payer } from '../../support/chain/money-world.ts';
import { createMortal, deathsAt } from '../../support/chain/mortal.ts';
import { startRpcFaultProxy, type RpcFaultProxy } from '../../support/chain/rpc-fault-proxy.ts';

const DEEP = process.env['TOLLGATE_DEEP'] === '1';
const STEPS = [
  'begin-handover',
  'transfer opening',
  'insert-act',
  'insert-withdrawal',
  'transfer withdrawal',
  'sign-withdrawal',
  'broadcast',
  'transfer withdrawal-paid',
  'tie-arrival',
  'transfer deposit',
  'note-empty',
];
const BY_DAY = ['begin-handover'];
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

  const bookOf = async (gateway: MoneyGateway) => (await gateway.chains.books())[0]!;

  /** Until the treasury before holds nothing, and the books have noted that. */
  async function emptied(gateway: MoneyGateway, isDead = () => false): Promise<void> {
    for (let waited = 0; !isDead(); waited += 1) {
      if (waited > 400) throw new Error(`it is not empty: ${gateway.problems.join('; ')}`);
      await world.finalize();
      const [audit] = await gateway.chains.audit();
      if (audit?.reserves) expect(audit.reserves.held).toBe(audit.reserves.booked);
      if (!isDead() && (await bookOf(gateway).catch(() => null))?.previousEmpty) return;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
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
    const next = await nextTreasury();
    const keys = { treasuryKey: next.key, previousKey: now.key };
    world.treasuries = [next.address, now.address];
    const gateway = await world.gateway({ keys });
    await expect(world.gateway({ keys: { treasuryKey: next.key } })).rejects.toThrow('was not empty');
    expect((await gateway.chains.chain(world.network)!.requirements(1n, null)).payTo).toBe(next.address);
    await emptied(gateway);
    expect(await world.balanceOf(next.address)).toBe(PAID + OWN);
    expect(await world.available(OPERATOR_TREASURY)).toBe(OWN);

    const payment = gateway.chains.chain(world.network)!.read(await payer.sign(terms));
    await gateway.chains.deposits.take(payment, { account: payer.account, request: null });
    await world.chain.send(payer, now.address, 1_000_000n);
    await pay(gateway, 4_000_000n);
    await world.settle(gateway);
    await emptied(gateway);
    await world.settle(gateway);
    const credited = PAID + 7_000_000n;
    expect(await world.available(escrowOf(payer.account))).toBe(credited);
    expect(await world.balanceOf(next.address)).toBe(credited + OWN);

    await gateway.chains.withdrawals.request({
      id: 'after',
      network: world.network,
      account: payer.account,
      source: escrowOf(payer.account),
      address: payer.address,
      amount: 7_000_000n,
      handedOut: false,
    });
    await world.settle(gateway);
    expect(await world.balanceOf(next.address)).toBe(PAID + OWN);
    expect(gateway.problems.filter((one) => one.includes('stopped'))).toEqual([]);
    await gateway.close();
    // The key of a third treasury is a mistake.
    const other = await world.chain.newTreasury();
    await expect(world.gateway({ keys: { treasuryKey: other.key } })).rejects.toThrow('set both keys');
    await end(next);
  });

  test('whenever its process dies, the next one goes on', async () => {
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
    }
  });
});
