import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { EvmMoney } from '../../support/chain/money-chain.ts';
import { openMoneyWorld, type MoneyGateway, type MoneyWorld } from '../../support/chain/money-world.ts';
import { startRpcFaultProxy, type RpcFaultProxy } from '../../support/chain/rpc-fault-proxy.ts';

// Questions to the node for one look at one open deposit. Each look on its own asks 13 for a payment that is in no
// block, and 9 for one that is not final.

const DEPOSITS = 12;
const ROUNDS = 4;
/** Longer than what looks share is good for. */
const BETWEEN_MS = 120;

let world: MoneyWorld<EvmMoney>;
let proxy: RpcFaultProxy;
beforeAll(async () => {
  world = await openMoneyWorld();
  proxy = await startRpcFaultProxy(world.chain.url);
});
afterAll(async () => {
  await proxy.stop();
  await world.close();
});

async function perLook(gateway: MoneyGateway, ids: readonly string[]): Promise<number> {
  proxy.forget();
  for (let round = 0; round < ROUNDS; round += 1) {
    await pause(BETWEEN_MS);
    await Promise.all(
      ids.map(async (id) => gateway.chains.deposits.carryOn((await gateway.chains.depositRows.find(id))!)),
    );
  }
  return proxy.seen.length / (ROUNDS * ids.length);
}

test('an open deposit costs the node a fifth of what it costs alone', async () => {
  const gateway = await world.gateway({ rpcUrl: proxy.url, waitMs: 1, background: false });
  const signed = await Promise.all(
    Array.from({ length: DEPOSITS }, async () => {
      const payer = await world.payer();
      return { payer, ...(await gateway.sign(payer, 1_000_000n)) };
    }),
  );
  await world.chain.anvil.setAutomine(false);
  await Promise.all(
    signed.map(({ payer, payment }) =>
      gateway.chains.deposits.take(payment, { account: payer.account, request: null }),
    ),
  );
  const ids = signed.map(({ payment }) => payment.id);
  expect(await perLook(gateway, ids)).toBeLessThanOrEqual(13 / 5);
  await world.chain.anvil.setAutomine(true);
  await world.chain.anvil.mine(1);
  // The first looks find them; those after see that they still stand.
  await perLook(gateway, ids);
  expect((await gateway.chains.depositRows.find(ids[0]!))!.state).toBe('credited');
  expect(await perLook(gateway, ids)).toBeLessThanOrEqual(9 / 5);
  await gateway.close();
  await world.settle();
});
