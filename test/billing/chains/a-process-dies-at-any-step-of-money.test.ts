import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { escrowOf } from '#billing';
import { evmMoney, solanaMoney, type MoneyChain } from '../../support/chain/money-chain.ts';
import { openMoneyWorldOn, type MoneyGateway, type MoneyWorld, type Payer } from '../../support/chain/money-world.ts';
import { createMortal, type Death, type Mortal } from '../../support/chain/mortal.ts';
import { startRpcFaultProxy, type RpcFaultProxy } from '../../support/chain/rpc-fault-proxy.ts';
import { whileBlocksCome } from '../../support/chain/while-blocks-come.ts';

const DEEP = process.env['TOLLGATE_DEEP'] === '1';
const ROUNDS = DEEP ? 50 : 1;
const DEPOSIT_STEPS = [
  'insertDeposit',
  'broadcast',
  'noteTransaction',
  'noteEvent',
  'transfer deposit',
  'markCredited',
  'markFinal',
  'moveCursor',
];
const WITHDRAWAL_STEPS = [
  'insertWithdrawal',
  'transfer withdrawal',
  'moveWithdrawal',
  'signWithdrawal',
  'broadcast',
  'noteHeight',
  'transfer withdrawal-paid',
  'markPaid',
];
const PAID = 5_000_000n;
const WITHDRAWN = 3_000_000n;

/**
 * By day at the steps between which money is in two places: before one of them and after the next, and on the other
 * chain the other way round.
 */
const BY_DAY = ['broadcast', 'noteEvent', 'transfer deposit', 'signWithdrawal'];

const deaths = (steps: readonly string[], odd: number): Death[] =>
  Array.from({ length: ROUNDS }, () =>
    steps
      .filter((at) => DEEP || BY_DAY.includes(at))
      .flatMap((at, index): Death[] =>
        (['before', 'after'] as const)
          .filter((_, side) => DEEP || (index + side) % 2 === odd)
          .map((when) => ({ at, when })),
      ),
  ).flat();

/** Ends where the process does. */
const deadly = async (work: () => Promise<unknown>): Promise<void> => {
  await work().catch(() => {});
};

describe.each([
  ['an EVM chain', evmMoney, 0],
  ['Solana', solanaMoney, 1],
] as const)('over %s', (_name, startChain, odd) => {
  let world: MoneyWorld;
  let proxy: RpcFaultProxy;
  beforeAll(async () => {
    const chain: MoneyChain = await startChain();
    world = await openMoneyWorldOn(chain);
    proxy = await startRpcFaultProxy(chain.url);
  });
  afterAll(async () => {
    await proxy.stop();
    await world.close();
  });

  async function until(mortal: Mortal, reached: () => Promise<boolean>): Promise<void> {
    await whileBlocksCome(
      world,
      async () => mortal.dead || (await reached()),
      () => `neither dead nor done after: ${mortal.steps.join(', ')}`,
    );
  }

  /** A payment is taken to its finality by a process that may die on the way. Resolves with what it did. */
  async function deposit(dies: Death | null, payer: Payer, amount = PAID): Promise<Mortal> {
    // Signed before there is anybody who could die of it.
    const signer = await world.gateway();
    const { payment } = await signer.sign(payer, amount);
    await signer.close();
    const mortal = createMortal(dies, proxy);
    const gateway = await world.gateway({ rpcUrl: proxy.url, through: mortal.through, waitMs: 2_000 });
    await deadly(() => gateway.chains.deposits.take(payment, { account: payer.account, request: null }));
    await until(
      mortal,
      async () => (await gateway.chains.depositRows.find(payment.id).catch(() => null))?.state === 'final',
    );
    await gateway.close();
    return mortal;
  }

  async function withdraw(dies: Death | null, payer: Payer, id: string): Promise<Mortal> {
    const mortal = createMortal(dies, proxy);
    const gateway = await world.gateway({ rpcUrl: proxy.url, through: mortal.through });
    const asked = {
      id,
      network: world.network,
      account: payer.account,
      source: escrowOf(payer.account),
      address: payer.address,
      amount: WITHDRAWN,
      handedOut: false,
    };
    await deadly(() => gateway.chains.withdrawals.request(asked));
    await until(mortal, async () => (await gateway.chains.withdrawalRows.find(id).catch(() => null))?.state === 'paid');
    await gateway.close();
    return mortal;
  }

  /** What the process before left is brought to an end by the next. */
  async function recover(work: (gateway: MoneyGateway) => Promise<void>): Promise<void> {
    proxy.heal();
    const gateway = await world.gateway({ aheadMs: 60_000 });
    await world.settle(gateway);
    await work(gateway);
    await gateway.close();
  }

  test('a deposit: credited once, or not taken at all, at whichever step its process dies', async () => {
    const { steps } = await deposit(null, await world.payer());
    expect(steps).toEqual(expect.arrayContaining([...DEPOSIT_STEPS]));
    for (const { at, when } of deaths(DEPOSIT_STEPS, odd)) {
      const payer = await world.payer();
      const mortal = await deposit({ at, when }, payer);
      expect(mortal.dead, `${when} ${at}`).toBe(true);
      await recover(async () => {
        const left = await world.balanceOf(payer.address);
        const taken = 100_000_000n - left;
        // Before its row is there nothing has happened; once it is there somebody brings it home.
        expect(taken, `${when} ${at}: ${mortal.steps.join(', ')}`).toBe(
          at === 'insertDeposit' && when === 'before' ? 0n : PAID,
        );
        expect(await world.available(escrowOf(payer.account))).toBe(taken);
      });
    }
  });

  test('a withdrawal: paid out once, at whichever step its process dies', async () => {
    const plan = deaths(WITHDRAWAL_STEPS, odd);
    let escrow = WITHDRAWN * BigInt(plan.length + 1);
    const payer = await world.payer(escrow);
    await deposit(null, payer, escrow);
    await recover(async () => {});
    const { steps } = await withdraw(null, payer, 'wd-0');
    expect(steps).toEqual(expect.arrayContaining([...WITHDRAWAL_STEPS]));
    escrow -= WITHDRAWN;
    let wallet = WITHDRAWN;
    for (const [index, { at, when }] of plan.entries()) {
      const id = `wd-${index + 1}`;
      const mortal = await withdraw({ at, when }, payer, id);
      expect(mortal.dead, `${when} ${at}`).toBe(true);
      await recover(async (gateway) => {
        const state = (await gateway.chains.withdrawalRows.find(id))?.state ?? null;
        expect(state, `${when} ${at}`).toBe(at === 'insertWithdrawal' && when === 'before' ? null : 'paid');
        if (state === 'paid') {
          escrow -= WITHDRAWN;
          wallet += WITHDRAWN;
        }
        expect(await world.balanceOf(payer.address), `${when} ${at}: ${mortal.steps.join(', ')}`).toBe(wallet);
        expect(await world.available(escrowOf(payer.account))).toBe(escrow);
      });
    }
  });
});
