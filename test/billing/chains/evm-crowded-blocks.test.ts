import { encodeFunctionData, parseAbi, type Hex } from 'viem';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Incoming } from '../../../src/billing/chains/chain.ts';
import { startEvmWorld, type EvmWorld } from '../../support/chain/evm-world.ts';
import { startRpcFaultProxy, type RpcFaultProxy } from '../../support/chain/rpc-fault-proxy.ts';

/*
 * Anybody can fill a block with transfers of 0 to the treasury, so that the logs of this block are longer than any
 * other answer that the gateway reads. The transfers in and after that block are seen all the same.
 */

const READ_MAX = 8 * 1024 * 1024;
const TRANSACTIONS = 12;
const TRANSFERS = 1_500;
const CROWD: Hex = `0x${'c0'.repeat(20)}`;
const ONE: Hex = `0x${'c1'.repeat(20)}`;

let world: EvmWorld;
let proxy: RpcFaultProxy;

beforeAll(async () => {
  world = await startEvmWorld({ args: ['--gas-limit', '400000000'] });
  proxy = await startRpcFaultProxy(world.anvil.url);
  await world.anvil.rpc('anvil_setCode', [CROWD, repeating(world.token.address, TRANSFERS)]);
  await world.anvil.rpc('anvil_setCode', [ONE, repeating(world.token.address, 1)]);
});
afterAll(async () => {
  await proxy.stop();
  await world.stop();
});

/** A contract that calls the token so many times with the call data that it got. */
function repeating(token: Hex, times: number): Hex {
  const copied = `36600060003762${times.toString(16).padStart(6, '0')}`;
  const call = `60006000366000600073${token.slice(2)}5af150`;
  return `0x${copied}5b${call}6001900380600a5700`;
}

const transferCall = (amount: bigint): Hex =>
  encodeFunctionData({
    abi: parseAbi(['function transfer(address, uint256)']),
    args: [world.treasury.address, amount],
  });

test('a block with very many transfers of 0 stops no deposit', async () => {
  const chain = world.chainWith({ rpcUrl: proxy.url, timeoutMs: 120_000 });
  let { cursor } = await chain.incoming(null);
  await world.token.mint(ONE, 7n);
  const payer = await world.payer();

  await world.anvil.setAutomine(false);
  const [from] = await world.anvil.rpc<Hex[]>('eth_accounts');
  const send = (to: Hex, amount: bigint, gas: string) =>
    world.anvil.rpc('eth_sendTransaction', [{ from, to, data: transferCall(amount), gas }]);
  for (let sent = 0; sent < TRANSACTIONS; sent += 1) await send(CROWD, 0n, '0xf42400');
  await send(ONE, 7n, '0x30d40');
  await world.anvil.rpc('evm_mine');
  await world.anvil.setAutomine(true);
  const block = await world.anvil.rpc('eth_blockNumber');
  const logs = await world.anvil.rpc('eth_getLogs', [
    { address: world.token.address, fromBlock: block, toBlock: block },
  ]);
  expect((logs as unknown[]).length).toBe(TRANSACTIONS * TRANSFERS + 1);
  expect(JSON.stringify(logs).length).toBeGreaterThan(READ_MAX);
  await world.token.transfer(payer, world.treasury.address, 900n);
  await world.anvil.mine(2);

  const events: Incoming[] = [];
  proxy.forget();
  for (let more = true; more;) {
    const page = await chain.incoming(cursor);
    events.push(...page.events);
    ({ cursor, more } = page);
  }
  expect(events).toEqual([
    expect.objectContaining({ amount: 7n, paymentId: null }),
    expect.objectContaining({ amount: 900n, sender: payer.address, paymentId: null }),
  ]);
  // Transfers of 0 bring nothing in, so their receipts are not read.
  expect(proxy.seen.filter(({ method }) => method === 'eth_getTransactionReceipt')).toHaveLength(2);
});
