import { expect, onTestFinished, test } from 'vitest';
import { startEvmWorld } from '../../support/chain/evm-world.ts';
import { startRpcFaultProxy } from '../../support/chain/rpc-fault-proxy.ts';

test('a payout that is further back than one search reaches is found by the next searches', async () => {
  const world = await startEvmWorld();
  onTestFinished(() => world.stop());
  const proxy = await startRpcFaultProxy(world.anvil.url);
  onTestFinished(() => proxy.stop());
  const payout = { id: 'far-back', to: (await world.payer()).address, amount: 3n };
  await world.token.mint(world.treasury.address, 3n);
  const signed = await world.chain.sign(payout, null);
  const { transaction } = await world.mined(world.chain.send(payout, signed));
  // A search has about 200 requests, so it does not reach back that far.
  await world.anvil.mine(2_150);
  proxy.set({
    methods: ['eth_getLogs'],
    when: ({ params }) => {
      const { fromBlock, toBlock } = (params as { fromBlock?: string; toBlock?: string }[])[0]!;
      return Number(toBlock) - Number(fromBlock) >= 10;
    },
    fault: { kind: 'error', code: -32600, message: 'eth_getLogs is limited to 10 blocks' },
  });
  const late = world.chainWith({ rpcUrl: proxy.url, timeoutMs: 10_000 });
  const sightings: unknown[] = [];
  for (let look = 0; look < 2; look += 1) {
    sightings.push(await late.findPayout(payout, signed, null).catch((error: Error) => error.name));
    // Blocks go on, and some of them are undone.
    await world.anvil.mine(5);
    await world.anvil.reorg(1);
  }
  expect(sightings[0]).toBe('ChainUnavailable');
  expect(sightings.at(-1)).toMatchObject({ state: 'paid', transaction, final: true });
});
