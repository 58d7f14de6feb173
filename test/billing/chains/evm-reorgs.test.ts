import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { startEvmWorld, type EvmWorld } from '../../support/chain/evm-world.ts';

/*
 * A payment that its chain undid is open again, and may be submitted again. A chain that undoes what was final is
 * said to have done so.
 */

const deep = process.env['TOLLGATE_DEEP'] === '1';
const depths = deep ? Array.from({ length: 60 }, (_, index) => (index % 12) + 1) : [1, 2, 7, 12];
let world: EvmWorld;

// Final after 64 blocks.
const start = async (): Promise<void> => {
  world = await startEvmWorld({ slotsInAnEpoch: 32 });
};
beforeAll(start);
afterAll(() => world.stop());
// anvil loses its state when blocks are undone beyond some hundred that it has mined.
afterEach(async () => {
  if (Number(await world.anvil.rpc('eth_blockNumber')) < 200) return;
  await world.stop();
  await start();
});

test.each(depths)('a reorganization of %i blocks undoes a payment, which comes again', async (depth) => {
  const { chain, anvil } = world;
  const payer = await world.payer();
  const before = await world.held();
  await anvil.mine(14);
  const payment = await world.payment(payer);
  const { transaction } = await world.mined(chain.submit(payment));
  await anvil.mine(depth - 1);
  expect(await chain.find(payment, transaction)).toMatchObject({
    state: 'settled',
    event: { confirmations: depth, final: false },
  });
  await anvil.reorg(depth);
  expect(await chain.find(payment, transaction)).toEqual({ state: 'open' });
  expect(await chain.find(payment, null)).toEqual({ state: 'open' });
  expect(await world.held()).toBe(before);
  const again = await world.mined(chain.submit(payment));
  expect(await chain.find(payment, transaction)).toMatchObject({
    state: 'settled',
    event: { transaction: again.transaction, confirmations: 1 },
  });
  expect((await world.held()) - before).toBe(1_000_000n);
});

test('a block that was final and is another one now is told, and nothing is read past it', async () => {
  const chain = world.chainWith({ finality: 3 });
  await world.anvil.mine(10);
  const { cursor } = await chain.incoming(null);
  await world.anvil.reorg(8);
  const broken = expect.objectContaining({
    name: 'FinalityBroken',
    message: expect.stringContaining('Finality of eip155:84532 was broken'),
  });
  await expect(chain.incoming(cursor)).rejects.toEqual(broken);
  await expect(chain.balanceAt(cursor)).rejects.toEqual(broken);
});
