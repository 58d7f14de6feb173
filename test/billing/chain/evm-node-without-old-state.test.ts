import { afterAll, beforeAll, expect, test } from 'vitest';
import { startEvmWorld, type EvmWorld } from '../../support/chain/evm-world.ts';
import { startRpcFaultProxy, type RpcFaultProxy } from '../../support/chain/rpc-fault-proxy.ts';

let world: EvmWorld;
let proxy: RpcFaultProxy;
beforeAll(async () => {
  world = await startEvmWorld();
  proxy = await startRpcFaultProxy(world.anvil.url);
});
afterAll(async () => {
  await proxy.stop();
  await world.stop();
});

test('the balance of a final block is known where it was read when the block was new', async () => {
  let newest = 0n;
  proxy.set(
    {
      methods: ['eth_call'],
      when: ({ params }) => {
        const at = (params as readonly unknown[])[1];
        return typeof at === 'string' && at.startsWith('0x') && BigInt(at) < newest;
      },
      fault: { kind: 'error', code: -32_000, message: 'missing trie node 5f (path ) state 0x1 is not available' },
    },
    {
      methods: ['eth_getBlockByNumber'],
      when: ({ params }) => (params as readonly unknown[])[0] === 'latest',
      fault: {
        kind: 'rewrite',
        result: (block) => {
          newest = BigInt((block as { readonly number: string }).number);
          return block;
        },
      },
    },
  );
  const chain = world.chainWith({ rpcUrl: proxy.url });
  const payer = await world.payer();
  let { cursor } = await chain.incoming(null);
  expect(await chain.balanceAt(cursor)).toBeNull();

  const events = [];
  for (const amount of [5n, 7n, 11n]) {
    await world.token.transfer(payer, world.treasury.address, amount);
    await world.anvil.mine(1);
    for (let looks = 0; looks < 4; looks += 1) {
      const page = await chain.incoming(cursor);
      events.push(...page.events.map((event) => event.amount));
      ({ cursor } = page);
      const held = await chain.balanceAt(cursor);
      // What it tells is what came in up to there.
      if (held !== null) expect(held).toBe(events.reduce((sum, one) => sum + one, 0n));
      await world.anvil.mine(1);
    }
    expect(await chain.balanceAt(cursor)).not.toBeNull();
  }
  expect(events).toEqual([5n, 7n, 11n]);
});
