import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type EvmMoney, solanaMoney } from '../../support/chain/money-chain.ts';
import {
  openMoneyWorld,
  openMoneyWorldOn,
  type MoneyGateway,
  type MoneyWorld,
} from '../../support/chain/money-world.ts';
import { startRpcFaultProxy, type RpcFaultProxy } from '../../support/chain/rpc-fault-proxy.ts';
import { unlessStalled } from '../../support/unless-stalled.ts';

// Questions to the node for one look at one open deposit. Each look on its own asks an EVM node 13 for a payment that
// is in no block, and 9 for one that is not final; a node of Solana 3 and 2.

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

const ofProxy = { forget: () => proxy.forget(), count: () => proxy.seen.length };

async function perPoll(
  gateway: MoneyGateway,
  ids: readonly string[],
  asked: { forget(): void; count(): number } = ofProxy,
): Promise<number> {
  asked.forget();
  for (let round = 0; round < ROUNDS; round += 1) {
    await pause(BETWEEN_MS);
    await Promise.all(
      ids.map(async (id) => gateway.chains.deposits.carryOn((await gateway.chains.depositRows.find(id))!)),
    );
  }
  return asked.count() / (ROUNDS * ids.length);
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
  await unlessStalled(10, async () => expect(await perPoll(gateway, ids)).toBeLessThanOrEqual(13 / 5));
  await world.chain.anvil.setAutomine(true);
  await world.chain.anvil.mine(1);
  // The first looks find them; those after see that they still stand.
  await perPoll(gateway, ids);
  expect((await gateway.chains.depositRows.find(ids[0]!))!.state).toBe('credited');
  await unlessStalled(10, async () => expect(await perPoll(gateway, ids)).toBeLessThanOrEqual(9 / 5));
  await gateway.close();
  await world.settle();
});

test('so it is on Solana', async () => {
  const chain = await solanaMoney({ confirmAfter: 1 });
  const solana = await openMoneyWorldOn(chain);
  const { asked, faults } = chain.twin;
  const ofTwin = {
    forget: () => asked.clear(),
    count: () => asked.values().reduce((sum, times) => sum + times, 0),
  };
  const gateway = await solana.gateway({ waitMs: 1, background: false });
  const signed = await Promise.all(
    Array.from({ length: DEPOSITS }, async () => {
      const payer = await solana.payer();
      return { payer, ...(await gateway.sign(payer, 1_000_000n)) };
    }),
  );
  // The node takes them, and no leader does yet.
  faults.landAfter = 20;
  await Promise.all(
    signed.map(({ payer, payment }) =>
      gateway.chains.deposits.take(payment, { account: payer.account, request: null }),
    ),
  );
  const ids = signed.map(({ payment }) => payment.id);
  // The first looks see whether the blockhashes are valid.
  await perPoll(gateway, ids);
  await unlessStalled(10, async () => expect(await perPoll(gateway, ids, ofTwin)).toBeLessThanOrEqual(3 / 5));
  chain.twin.advance(22);
  await perPoll(gateway, ids);
  expect((await gateway.chains.depositRows.find(ids[0]!))!.state).toBe('credited');
  await unlessStalled(10, async () => expect(await perPoll(gateway, ids, ofTwin)).toBeLessThanOrEqual(2 / 5));
  await gateway.close();
  await solana.settle();
  await solana.close();
});
