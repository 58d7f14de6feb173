import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { FEES } from '#billing';
import type { NewAct } from '../../../src/billing/chains/act-rows.ts';
import { evmMoney, solanaMoney } from '../../support/chain/money-chain.ts';
import { openMoneyWorldOn, type MoneyGateway, type MoneyWorld } from '../../support/chain/money-world.ts';
import { createMortal, deathsAt } from '../../support/chain/mortal.ts';
import { startRpcFaultProxy, type RpcFaultProxy } from '../../support/chain/rpc-fault-proxy.ts';
import { whileBlocksCome } from '../../support/chain/while-blocks-come.ts';

const DEEP = process.env['TOLLGATE_DEEP'] === '1';
const STEPS = ['insertAct', 'moveAct', 'transfer treasury-make_good'];
/** By day where the money moves. */
const DEATHS = deathsAt(DEEP ? STEPS : STEPS.slice(-1));
const LOSS = 8_000_000n;
const PAID = 1_000_000n;

describe.each([
  ['an EVM chain', evmMoney],
  ['Solana', solanaMoney],
])('over %s', (_name, startChain) => {
  let world: MoneyWorld;
  let proxy: RpcFaultProxy;
  beforeAll(async () => {
    const chain = await startChain();
    world = await openMoneyWorldOn(chain);
    proxy = await startRpcFaultProxy(chain.url);
  });
  afterAll(async () => {
    await proxy.stop();
    await world.close();
  });

  test('a loss is paid for once, whenever the process dies', async () => {
    const first = await world.gateway();
    // As after a write-off: the fees have what was lost.
    const loss = { id: 'a loss', from: 'treasury:losses', to: FEES, amount: LOSS, memo: 'a loss' } as const;
    expect(await first.ledger.transfer(loss)).toMatchObject({ ok: true });
    await first.close();
    let lost = LOSS;
    for (const [index, dies] of [null, ...DEATHS].entries()) {
      const act: NewAct = {
        id: `good-${index}`,
        kind: 'make_good',
        network: '',
        amount: PAID,
        bearer: FEES,
        toNetwork: null,
        address: null,
        sender: null,
        feeMax: 0n,
        reference: `reference ${index}`,
      };
      const stateIn = async (gateway: MoneyGateway) => (await gateway.chains.actRows.find(act.id))?.state;
      const mortal = createMortal(dies, proxy);
      const dying = await world.gateway({ rpcUrl: proxy.url, through: mortal.through });
      await dying.chains.acts.request(act).catch(() => {});
      await whileBlocksCome(
        world,
        async () => mortal.dead || (await stateIn(dying)) === 'done',
        () => `neither dead nor done after: ${mortal.steps.join(', ')}`,
      );
      await dying.close();
      if (dies === null) expect(mortal.steps).toEqual(expect.arrayContaining(STEPS));
      proxy.heal();
      const gateway = await world.gateway({ aheadMs: 60_000 });
      expect(await gateway.chains.acts.request(act), JSON.stringify(dies)).toMatchObject({ state: 'done' });
      await world.settle(gateway);
      await gateway.close();
      lost -= PAID;
      expect(await world.available('treasury:losses'), JSON.stringify(dies)).toBe(-lost);
      expect(await world.available(FEES)).toBe(lost);
    }
  });
});
