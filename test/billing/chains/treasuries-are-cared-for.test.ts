import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { escrowOf, FEES, OPERATOR_TREASURY, treasuryOf } from '#billing';
import { createActRows, type TreasuryAct, type NewAct } from '../../../src/billing/chains/act-rows.ts';
import type { ChainPolicy } from '../../../src/billing/chains/chains.ts';
import { createEvmChain } from '../../../src/billing/chains/evm/evm-chain.ts';
import { createSolanaChain } from '../../../src/billing/chains/solana/solana-chain.ts';
import { adHoc } from '../../support/ad-hoc.ts';
import { evmMoney, solanaMoney } from '../../support/chain/money-chain.ts';
import { openMoneyWorldOn, type MoneyGateway, type MoneyWorld, type Payer } from '../../support/chain/money-world.ts';
import { createMortal, deathsAt, type Death, type Mortal } from '../../support/chain/mortal.ts';
import { startRpcFaultProxy, type RpcFaultProxy } from '../../support/chain/rpc-fault-proxy.ts';
import { whileBlocksCome } from '../../support/chain/while-blocks-come.ts';

const DEEP = process.env['TOLLGATE_DEEP'] === '1';
const LOSS_STEPS = ['insertAct', 'moveAct', 'transfer treasury-write_off'];
const MOVE_STEPS = [
  'insertAct',
  'insertWithdrawal',
  'transfer withdrawal',
  'signWithdrawal',
  'broadcast',
  'transfer withdrawal-paid',
  'tieArrival',
  'insertDeposit',
  'transfer deposit',
  'transfer treasury-move',
];
/** By day where money is in two places. */
const BY_DAY = ['tieArrival'];
const deaths = (steps: readonly string[]): Death[] =>
  deathsAt(DEEP ? steps : steps.filter((at) => BY_DAY.includes(at)));

describe.each([
  ['an EVM chain', evmMoney],
  ['Solana', solanaMoney],
])('over %s', (_name, startChain) => {
  let world: MoneyWorld;
  let proxy: RpcFaultProxy;
  let own: Payer;
  let customer: Payer;
  beforeAll(async () => {
    const chain = await startChain();
    world = await openMoneyWorldOn(chain);
    proxy = await startRpcFaultProxy(chain.url);
    own = await world.payer(1_000_000n);
    // What customers have paid in.
    const gateway = await world.gateway();
    customer = await world.payer();
    const { payment } = await gateway.sign(customer, 90_000_000n);
    await gateway.chains.deposits.take(payment, { account: payment.payerAccount, request: null });
    await world.settle(gateway);
    await gateway.close();
  });
  afterAll(async () => {
    await proxy.stop();
    await world.close();
  });

  const policy = () => ({ moveTo: [own.address] });
  let acts = 0;
  const actOf = (asked: Partial<NewAct>): NewAct => ({
    id: `act-${(acts += 1)}`,
    kind: 'write_off',
    network: world.network,
    amount: 1n,
    bearer: null,
    toNetwork: null,
    address: null,
    sender: null,
    feeMax: 0n,
    reference: `reference ${acts}`,
    ...asked,
  });

  /** Somebody who has the key takes money out, and no book knows it. */
  async function steal(amount: bigint): Promise<void> {
    const setup = { ...world.chain.setup, rpcUrl: world.chain.url, facilitator: 'in-process' as const };
    const more = { finality: null, timeoutMs: 5_000, now: Date.now };
    const evm = world.network.startsWith('eip155:');
    const chain = (evm ? createEvmChain : createSolanaChain)({ ...setup, ...more });
    const payout = { id: `theft-${(acts += 1)}`, to: own.address, amount };
    await chain.send(payout, await chain.sign(payout, null));
    await world.finalize();
    chain.close();
  }

  const haltOf = async (gateway: MoneyGateway) => (await gateway.chains.books())[0]!.halted;

  /** The gateway as another process finds it. */
  async function recover(): Promise<void> {
    proxy.heal();
    await world.settle();
  }

  /** Works with a gateway that may die of it, until it is dead or `reached`. */
  async function mortally(
    dies: Death | null,
    work: (gateway: MoneyGateway) => Promise<unknown>,
    reached: (gateway: MoneyGateway) => Promise<boolean>,
    more: Partial<ChainPolicy> = {},
  ): Promise<Mortal> {
    const mortal = createMortal(dies, proxy);
    const gateway = await world.gateway({
      rpcUrl: proxy.url,
      through: mortal.through,
      policy: { ...policy(), ...more },
    });
    await work(gateway).catch(() => {});
    await whileBlocksCome(
      world,
      async () => mortal.dead || (await reached(gateway).catch(() => false)),
      () => `neither dead nor done after: ${mortal.steps.join(', ')}`,
    );
    await gateway.close();
    return mortal;
  }

  const done = (id: string) => async (gateway: MoneyGateway) =>
    (await gateway.chains.actRows.find(id))?.state === 'done';

  test('a loss is written off once, whenever its process dies; then withdrawals go on', async () => {
    const amount = 2_000_000n;
    const lost = async () => -(await world.available('treasury:losses'));
    for (const dies of [null, ...deaths(LOSS_STEPS)]) {
      const before = await lost();
      await steal(amount);
      const looking = await world.gateway();
      await looking.chains.audit();
      expect(await haltOf(looking)).toContain('the treasury holds');
      await looking.close();
      const act = actOf({ amount, bearer: 'treasury:losses' });
      const mortal = await mortally(dies, (gateway) => gateway.chains.acts.request(act), done(act.id));
      if (dies === null) expect(mortal.steps).toEqual(expect.arrayContaining([...LOSS_STEPS]));
      proxy.heal();
      const gateway = await world.gateway({ aheadMs: 60_000 });
      expect(await gateway.chains.acts.request(act)).toMatchObject({ state: 'done' });
      await world.settle(gateway);
      expect(await lost(), JSON.stringify(dies)).toBe(before + amount);
      await gateway.close();
    }
    // The operator pays in, and it is taken for the losses; his fees bear what he does not pay in.
    const gateway = await world.gateway();
    const all = await lost();
    await world.chain.mint(own.address, 1n);
    await world.chain.send(own, world.treasury, 1_500_000n);
    await world.settle(gateway);
    const [paidIn] = await gateway.chains.depositRows.suspense(null, 1);
    await gateway.chains.deposits.attributeOne(paidIn!.id, 'tollgate:operator');
    const good = (amount: bigint, bearer: string) =>
      gateway.chains.acts.request(actOf({ kind: 'make_good', network: '', amount, bearer }));
    expect(await good(1_500_000n, OPERATOR_TREASURY)).toMatchObject({ state: 'done' });
    expect(await world.available(OPERATOR_TREASURY)).toBe(0n);
    expect(await good(all - 1_500_000n, FEES)).toMatchObject({ state: 'refused', reason: 'fees has 0 USDC' });
    expect(await good(all, OPERATOR_TREASURY)).toMatchObject({ state: 'refused' });
    expect(await lost()).toBe(all - 1_500_000n);
    await gateway.close();
    // This one finds too little, while another one books with what has just come, and dies before it says so.
    let overtaken = false;
    const late = await world.gateway({
      background: false,
      through: {
        database: (real) => real,
        ledger: (real) => ({
          balance: real.balance,
          async transfer(asked) {
            const moved = await real.transfer(asked);
            if (overtaken || !asked.id.startsWith('treasury-make_good:')) return moved;
            overtaken = true;
            return { ok: false, reason: 'insufficient', available: 0n };
          },
        }),
      },
    });
    const paid = actOf({ kind: 'make_good', network: '', amount: 1n, bearer: escrowOf(customer.account) });
    expect(await late.chains.acts.request(paid)).toMatchObject({
      state: 'agreed',
      reason: expect.stringContaining('It waits') as string,
    });
    expect(await late.chains.acts.request(paid)).toMatchObject({ state: 'done', reason: null });
    expect(await lost()).toBe(all - 1_500_001n);
    await late.close();
    await world.settle();
  });

  test('what is not the difference is not booked, and the same words are one act', async () => {
    const gateway = await world.gateway({ policy: policy() });
    const act = actOf({ amount: 5n, bearer: 'treasury:losses' });
    const before = await world.available('treasury:losses');
    expect(await gateway.chains.acts.request(act)).toMatchObject({
      state: 'refused',
      reason: expect.stringContaining('this is not the difference'),
    });
    expect(await world.available('treasury:losses')).toBe(before);
    await expect(gateway.chains.acts.request({ ...act, amount: 6n })).rejects.toMatchObject({
      code: 'idempotency_conflict',
    });
    const elsewhere = await world.payer(1n);
    const move = actOf({ kind: 'move', amount: 5n, toNetwork: world.network, address: elsewhere.address });
    await expect(gateway.chains.acts.request(move)).rejects.toMatchObject({ param: 'address' });
    const more = { ...move, address: own.address, amount: 90_000_001n };
    await expect(gateway.chains.acts.request(more)).rejects.toMatchObject({ param: 'amount' });
    await gateway.close();

    // A node that is away is no answer about an act.
    const cut = await world.gateway({ rpcUrl: proxy.url });
    proxy.set({ fault: { kind: 'refuse' } });
    const waiting = actOf({ amount: 7n, bearer: 'treasury:losses' });
    expect(await cut.chains.acts.request(waiting)).toMatchObject({ state: 'requested' });
    proxy.heal();
    // It waits for the next comparison. One begins with a gateway.
    const stateOf = async () => (await cut.chains.actRows.find(waiting.id))?.state;
    await cut.chains.acts.carryOn();
    expect(await stateOf()).toBe('requested');
    await cut.close();
    const next = await world.gateway();
    await expect.poll(stateOf, { timeout: 60_000 }).toBe('refused');
    await next.close();
  });

  test('what has come for a move is for nobody else, and is in suspense where the move is given back', async () => {
    const amount = 1_000_000n;
    const somebody = 'tollgate:local:somebody';
    // On Solana it has no token account, and cannot be paid.
    const nowhere = await world.payer(0n);
    await world.chain.mint(own.address, 3n * amount);
    let overtaken = false;
    const still = await world.gateway({
      background: false,
      policy: { moveTo: [own.address, nowhere.address] },
      through: {
        ledger: (real) => real,
        database: (real) => ({
          engine: real.engine,
          batch: (...batch) => real.batch(...batch),
          snapshot: (...snapshot) => real.snapshot(...snapshot),
          close: () => Promise.resolve(),
          async query(statement, params) {
            const found = await real.query(statement, params);
            if (!overtaken && statement.name.endsWith('.findActOfDeposit')) {
              // Another gateway ties it now, and dies.
              overtaken = true;
              const actRows = createActRows(world.database, { now: Date.now });
              const sender = world.network.startsWith('eip155:') ? own.address.toLowerCase() : own.address;
              expect(await actRows.tieArrival(params![0] as string, world.network, sender, amount)).toBe(true);
            }
            return found;
          },
        }),
      },
    });
    const { acts: treasuryActs, actRows, deposits, depositRows, wallets } = still.chains;
    await wallets.bind(own.account, somebody);
    const come = async () => {
      await world.chain.send(own, world.treasury, amount);
      await world.finalize();
      await still.chains.audit();
    };
    const base = { kind: 'move', amount, toNetwork: world.network } as const;
    const known = actOf({ ...base, address: own.address, sender: own.address });
    expect(await treasuryActs.request(known)).toMatchObject({ state: 'sending' });
    await come();
    expect(overtaken).toBe(true);
    const nameless = actOf({ ...base, address: nowhere.address });
    await treasuryActs.request(nameless);
    await wallets.unbind(own.account, somebody);
    await come();
    const suspended = async () => (await depositRows.suspense(null, 10)).map(({ id }) => id);
    const [deposit, ...others] = await suspended();
    expect(others).toEqual([]);
    expect(await treasuryActs.arrived(nameless.id, deposit!)).toMatchObject({ state: 'sending', deposit });
    expect(await suspended()).toEqual([]);
    expect(await deposits.attribute(own.address, own.account, null)).toEqual([]);
    expect(await deposits.attributeOne(deposit!, own.account)).toBeNull();
    // It was claimed in the moment before.
    const claimed = actOf({ ...base, address: own.address });
    await treasuryActs.request(claimed);
    await come();
    const [mine] = await suspended();
    await deposits.attributeOne(mine!, own.account);
    await world.database.query(adHoc('UPDATE treasury_acts SET deposit = $1 WHERE id = $2'), [mine!, claimed.id]);
    await still.close();

    const gateway = await world.gateway({ aheadMs: 60_000, policy: policy() });
    const end = world.network.startsWith('eip155:') ? 'done' : 'refused';
    const stateOf = async () => {
      await world.finalize();
      return Promise.all([known, nameless, claimed].map(async ({ id }) => (await actRows.find(id))?.state));
    };
    await expect.poll(stateOf, { timeout: 60_000 }).toEqual(['done', end, 'sent']);
    const depositOf = (id: string) => async () => (await actRows.find(id))?.deposit;
    await expect.poll(depositOf(claimed.id), { timeout: 60_000 }).toBeNull();
    if (end === 'refused') {
      await expect.poll(depositOf(nameless.id), { timeout: 60_000 }).toBeNull();
      expect((await gateway.chains.acts.arrived(claimed.id, deposit!)).state).toBe('done');
    } else {
      await world.chain.send(await world.payer(amount), world.treasury, amount);
      await world.finalize();
      await gateway.chains.audit();
      const [last] = await suspended();
      expect((await gateway.chains.acts.arrived(claimed.id, last!)).state).toBe('done');
    }
    await world.settle(gateway);
    expect(await world.available('treasury:transit')).toBe(0n);
    expect(await world.available(escrowOf(somebody))).toBe(0n);
    expect(await world.available(escrowOf(own.account))).toBe(amount);
    await gateway.close();
  });

  test('a withdrawal pays its fee to the operator, whenever the process dies', async () => {
    const fee = 50_000n;
    const amount = 1_000_000n;
    const payer = await world.payer(20_000_000n);
    const source = escrowOf(payer.account);
    const first = await world.gateway();
    const { payment } = await first.sign(payer, 20_000_000n);
    await first.chains.deposits.take(payment, { account: payer.account, request: null });
    await world.settle(first);
    await first.close();
    const paid = (id: string) => async (gateway: MoneyGateway) =>
      (await gateway.chains.withdrawalRows.find(id))?.state === 'paid';
    const steps = ['insertWithdrawal', 'transfer withdrawal-paid', 'transfer withdrawal-fee', 'markPaid'];
    let out = 0n;
    const before = await world.available(FEES);
    for (const dies of [null, ...deaths(steps)]) {
      const id = `with-fee-${(acts += 1)}`;
      const { network } = world;
      const asked = { id, network, account: payer.account, source, address: payer.address, amount, handedOut: false };
      await mortally(dies, (gateway) => gateway.chains.withdrawals.request(asked), paid(id), { withdrawalFee: fee });
      proxy.heal();
      // What was written down has its fee, whatever the operator asks now.
      const gateway = await world.gateway({ aheadMs: 60_000, policy: { withdrawalFee: 2n * fee } });
      const known = (await gateway.chains.withdrawalRows.find(id)) !== null;
      if (known) await gateway.chains.withdrawals.request(asked);
      await world.settle(gateway);
      if (known) out += amount;
      const count = out / amount;
      expect(await world.balanceOf(payer.address), JSON.stringify(dies)).toBe(out - count * fee);
      expect(await world.available(FEES)).toBe(before + count * fee);
      expect(await world.available(source)).toBe(20_000_000n - out);
      await gateway.close();
    }
    const strict = await world.gateway({ policy: { withdrawalFee: fee } });
    const little = { id: 'little', network: world.network, account: payer.account, source, address: payer.address };
    await expect(strict.chains.withdrawals.request({ ...little, amount: fee, handedOut: false })).rejects.toMatchObject(
      { message: 'The amount must be higher than the fee of 0.05 USDC' },
    );
    await strict.close();
  });

  test('a move that is signed while it is canceled is one of both', async () => {
    const amount = 2_000_000n;
    const held = await world.balanceOf(world.treasury);
    const transit = () => world.available('treasury:transit');
    const other = await world.gateway({ background: false, policy: policy() });
    /** A gateway that is overtaken right before a statement, once. */
    const overtaken = async (name: string, first: () => Promise<unknown>) => {
      let isFirst = true;
      return world.gateway({
        background: false,
        policy: policy(),
        through: {
          ledger: (real) => real,
          database: (real) => ({
            ...real,
            async query(statement, params) {
              if (isFirst && statement.name.endsWith(name)) {
                isFirst = false;
                await first();
              }
              return real.query(statement, params);
            },
          }),
        },
      });
    };
    const begin = async () => {
      const move = actOf({ kind: 'move', amount, toNetwork: world.network, address: own.address, sender: own.address });
      expect(await other.chains.acts.request(move)).toMatchObject({ state: 'sending' });
      return move.id;
    };
    const sign = async ({ chains }: MoneyGateway, id: string) =>
      chains.withdrawals.carryOn((await chains.withdrawalRows.find(id))!);

    const back = await begin();
    const signer = await overtaken('signWithdrawal', () => other.chains.acts.cancel(back));
    await sign(signer, back);
    expect(await other.chains.actRows.find(back)).toMatchObject({ state: 'refused', reason: 'Canceled' });
    expect(await other.chains.acts.cancel(back)).toMatchObject({ state: 'refused', reason: 'Canceled' });
    await world.finalize();
    expect(await world.balanceOf(world.treasury)).toBe(held);
    expect(await transit()).toBe(0n);
    await signer.close();

    const gone = await begin();
    const canceler = await overtaken('moveWithdrawal', () => sign(other, gone));
    await expect(canceler.chains.acts.cancel(gone)).rejects.toMatchObject({
      code: 'unprocessable',
      message: 'It is too late: its treasury has signed the move',
    });
    await canceler.close();
    await other.close();
    const gateway = await world.gateway({ aheadMs: 60_000, policy: policy() });
    await world.finalize();
    const stateOf = async () => {
      await world.finalize();
      return (await gateway.chains.actRows.find(gone))?.state;
    };
    await expect.poll(stateOf, { timeout: 60_000 }).toBe('sent');
    expect(await world.balanceOf(world.treasury)).toBe(held - amount);
    await world.chain.send(own, world.treasury, amount);
    await world.settle(gateway);
    expect(await transit()).toBe(0n);
    await expect(gateway.chains.acts.cancel(gone)).rejects.toThrow('too late');
    await gateway.close();
  });

  test('money moves between treasuries without a halt, whenever the process dies', async () => {
    const amount = 3_000_000n;
    const fee = 100_000n;
    const claimed = await world.available(escrowOf(own.account));
    for (const dies of [null, ...deaths(MOVE_STEPS)]) {
      const losses = await world.available('treasury:losses');
      const held = await world.balanceOf(world.treasury);
      const customers = await world.available(treasuryOf(world.network));
      const move = actOf({
        kind: 'move',
        amount,
        toNetwork: world.network,
        address: own.address,
        sender: own.address,
        feeMax: fee,
      });
      const state = async (gateway: MoneyGateway) => (await gateway.chains.actRows.find(move.id))?.state;
      let came = false;
      const reached = async (gateway: MoneyGateway): Promise<boolean> => {
        // At every moment the treasury holds what the books say.
        const [audit] = await gateway.chains.audit();
        if (audit?.reserves) expect(audit.reserves.held).toBe(audit.reserves.booked);
        const now = await state(gateway);
        if (now === 'sent' && !came) {
          came = true;
          await world.chain.send(own, world.treasury, amount - fee);
        }
        return now === 'done';
      };
      const mortal = await mortally(dies, (gateway) => gateway.chains.acts.request(move), reached);
      if (dies === null) expect(mortal.steps).toEqual(expect.arrayContaining([...MOVE_STEPS]));
      proxy.heal();
      const gateway = await world.gateway({ aheadMs: 60_000, policy: policy() });
      await gateway.chains.acts.request(move);
      const why = async () => `not done: ${await state(gateway)}; ${gateway.problems.join('; ')}`;
      await whileBlocksCome(world, () => reached(gateway), why);
      await world.settle(gateway);
      expect(await gateway.chains.actRows.find(move.id)).toMatchObject({
        arrived: amount - fee,
      } satisfies Partial<TreasuryAct>);
      expect(await haltOf(gateway)).toBeNull();
      expect(gateway.problems.filter((one) => one.includes('stopped'))).toEqual([]);
      expect(await world.balanceOf(world.treasury), JSON.stringify(dies)).toBe(held - fee);
      expect(await world.available(treasuryOf(world.network))).toBe(customers + fee);
      expect(await world.available('treasury:losses')).toBe(losses - fee);
      expect(await world.available('treasury:transit')).toBe(0n);
      await gateway.close();
    }
    expect(await world.available(escrowOf(own.account))).toBe(claimed);
    await recover();
  });
});
