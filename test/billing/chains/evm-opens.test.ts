import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createEvmChain } from '../../../src/billing/chains/evm/evm-chain.ts';
import { deployContract, deployEvmToken } from '../../support/chain/evm-token.ts';
import { startEvmWorld, type EvmWorld } from '../../support/chain/evm-world.ts';

/*
 * A setup that cannot be right is told before the first payment, in words that say what is wrong; a node that is
 * away is no fault of the setup.
 */

let world: EvmWorld;

beforeAll(async () => {
  world = await startEvmWorld();
});
afterAll(() => world.stop());

test('what is right opens, and opens again', async () => {
  await world.chain.open();
  await world.chain.open();
  await world.chainWith({ asset: world.token.address.toLowerCase(), finality: 3 }).open();
});

test('a node of another chain', async () => {
  await expect(world.chainWith({ network: 'eip155:8453' }).open()).rejects.toThrow(
    'The node for eip155:8453 belongs to chain eip155:84532',
  );
});

test('no contract, another contract, and other decimals', async () => {
  await expect(world.chainWith({ asset: `0x${'12'.repeat(20)}` }).open()).rejects.toThrow('There is no contract at 0x');
  const wallet = await deployContract(world.anvil, 'ContractWallet', [world.treasury.address]);
  await expect(world.chainWith({ asset: wallet }).open()).rejects.toThrow('does not answer decimals: it is not USDC');
  const { address } = await deployEvmToken(world.anvil, { decimals: 18 });
  await expect(world.chainWith({ asset: address }).open()).rejects.toThrow('has 18 decimals; micro-USD are 6');
});

test('another name or version than the asset signs with', async () => {
  await expect(world.chainWith({ assetName: 'USD Coin' }).open()).rejects.toThrow(
    'is not of name "USD Coin" and version "2"',
  );
  await expect(world.chainWith({ assetVersion: '1' }).open()).rejects.toThrow('is not of name "USDC" and version "1"');
});

test('faults that need no node to be seen', () => {
  const make = (change: object) => () => createEvmChain({ ...world.setup, ...change });
  expect(make({ network: 'base' })).toThrow('"base" is not the CAIP-2 name of an EVM chain, such as eip155:8453');
  expect(make({ asset: 'USDC' })).toThrow('must be 20 bytes of hex after 0x, not "USDC"');
  expect(make({ assetName: null })).toThrow('needs the name and the version of its EIP-712 domain');
  expect(make({ treasuryKey: new Uint8Array(64) })).toThrow('must be 32 bytes, not 64');
});

test('a node that is away, with a key in its address', async () => {
  const chain = world.chainWith({ rpcUrl: 'http://127.0.0.1:9/v2/a-secret-key' });
  const error = await chain.open().catch((error: unknown) => error as Error);
  expect(error).toMatchObject({ name: 'ChainUnavailable', message: '127.0.0.1:9: the connection failed' });
});

test('a node that asks for a password', async () => {
  const asked: unknown[] = [];
  const server = createServer((request, response) => {
    asked.push(request.headers.authorization);
    response.writeHead(401).end('{}');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const chain = world.chainWith({ rpcUrl: `http://me:p%40ss@127.0.0.1:${port}/` });
  const error = await chain.open().catch((error: unknown) => error as Error);
  expect(error).toMatchObject({ name: 'ChainUnavailable', message: expect.not.stringContaining('ss@') });
  expect(asked).toEqual([`Basic ${Buffer.from('me:p@ss').toString('base64')}`]);
  server.close();
  server.closeAllConnections();
});

test('what is asked when it is closed ends at once', async () => {
  const chain = world.chainWith({});
  chain.close();
  await expect(chain.open()).rejects.toMatchObject({
    name: 'ChainUnavailable',
    message: expect.stringContaining('the chain was closed'),
  });
});
