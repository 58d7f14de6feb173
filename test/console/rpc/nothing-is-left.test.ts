import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { ask } from '../../support/spine.ts';
import { AGENT, message, request, TOOLS, useRpcWorld } from './rpc-world.ts';

// Hundreds of entries of every kind leave no timer, no socket and no memory behind.

const world = useRpcWorld();
setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;
const MIB = 1024 * 1024;
/** Batches of 50. */
const [FIRST, ROUNDS] = [6, 20];

const count = (kind: string) => process.getActiveResourcesInfo().filter((name) => name === kind).length;
const heap = async () => {
  for (let round = 0; round < 3; round += 1) {
    collect();
    await new Promise((resolve) => setImmediate(resolve));
  }
  return process.memoryUsage().heapUsed + process.memoryUsage().external;
};

const batch = () =>
  world.batch(
    Array.from({ length: 10 }, (_, id) => [
      request(`${id} a`, 'ping'),
      request(`${id} b`, 'chat/completions', ask(`hello !tokens:2 ${'x'.repeat(5_000)}`)),
      request(`${id} c`, 'tools/call', { service: TOOLS, name: 'test_simple_text', arguments: {} }),
      request(
        `${id} d`,
        id === 0 ? 'message/send' : 'account/balance',
        id === 0 ? { agent: AGENT, message: message('echo hi') } : {},
      ),
      request(`${id} e`, 'no/such'),
    ]).flat(),
  );

test(`over ${ROUNDS * 50} entries`, async () => {
  // The first ones fill caches.
  for (let round = 0; round < FIRST; round += 1) await batch();
  await world.spine.quiet();
  const [bytes, timers, sockets] = [await heap(), count('Timeout'), count('TCPSocketWrap')];
  for (let round = 0; round < ROUNDS; round += 1) expect(await batch()).toHaveLength(50);
  await world.spine.quiet();
  // Idle connections to the fixtures come and go.
  expect(count('Timeout')).toBeLessThanOrEqual(timers + 8);
  expect(count('TCPSocketWrap')).toBeLessThanOrEqual(sockets + 16);
  expect((await heap()) - bytes).toBeLessThan(16 * MIB);
});
