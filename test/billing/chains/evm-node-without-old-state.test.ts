import { rmSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openDatabase } from '#store';
import type { ChainSetup } from '../../../src/billing/chains/chain.ts';
import { createSnapshotRows } from '../../../src/billing/chains/chain-rows.ts';
import { startEvmWorld, type EvmWorld } from '../../support/chain/evm-world.ts';
import { startRpcFaultProxy, type RpcFaultProxy } from '../../support/chain/rpc-fault-proxy.ts';
import { newDataDirectory } from '../../support/data-directory.ts';

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

/** It tells balances at its newest block alone. */
function forgetOldState(): void {
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
}

test('the balance of a final block is known where it was read when the block was new', async () => {
  forgetOldState();
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

test('a gateway that starts knows what was read before', async () => {
  forgetOldState();
  const dataDir = newDataDirectory();
  const database = await openDatabase({ dataDir });
  const snapshots = createSnapshotRows(database, world.chain.network);
  const before = world.chainWith({ rpcUrl: proxy.url, snapshots });
  const { cursor } = await before.incoming(null);
  expect(await before.balanceAt(cursor)).toBeNull();
  const payer = await world.payer();
  await world.token.transfer(payer, world.treasury.address, 13n);
  const held = await world.held();
  await before.incoming(cursor);
  before.close();
  // What was the newest block then is final now.
  await world.anvil.mine(3);

  const firstPoll = async (rows: Partial<ChainSetup>) => {
    const chain = world.chainWith({ rpcUrl: proxy.url, ...rows });
    const page = await chain.incoming(cursor);
    return chain.balanceAt(page.cursor);
  };
  expect(await firstPoll({})).toBeNull();
  expect(await firstPoll({ snapshots })).toBe(held);
  // What the books are past is removed.
  const treasury = world.treasury.address.toLowerCase();
  const all = async () => (await snapshots.list(treasury, 100)).length;
  expect(await all()).toBeGreaterThan(0);
  await snapshots.forget(treasury, 1_000_000n);
  expect(await all()).toBe(0);
  await database.close();
  rmSync(dataDir, { recursive: true });
});
