import { expect, test } from 'vitest';
import { artifactEvent, serveBreaking } from './support/breaking-agent.ts';
import { MESSAGE_PRICE, useCallsWorld } from './support/calls-world.ts';
import { BRIDGES, STREAMED_CHAT } from './support/endpoints.ts';
import { serveRaw, taskResult, writeEvent } from './support/raw-served.ts';

// Who asks an agent through the route of another protocol cannot ask for its task later: what the end of the answer
// says of money is all that is ever charged.

const calls = useCallsWorld();
const PRICE = Number(MESSAGE_PRICE);

test.each(BRIDGES)('a stream that breaks is gone on with until the task ends: $name', async (door) => {
  const { service } = await serveBreaking(calls, {
    gives: 'first ',
    stream: 'breaks',
    looked: (polls, { stands }) =>
      polls === 2 && stands('COMPLETED', { artifacts: [{ artifactId: 'a', parts: [{ text: 'first and last' }] }] }),
  });
  expect(
    await calls.spent(async () => {
      const told = await door.ask(calls, service);
      expect(told).toMatchObject({
        said: 'first and last',
        state: 'completed',
        cost: PRICE,
        finish: 'stop',
        error: null,
      });
      expect(await calls.world.spine.generation(told.id)).toMatchObject({
        outcome: 'complete',
        cost_micro_usdc: PRICE,
      });
    }),
  ).toBe(MESSAGE_PRICE);
});

test('an agent that has lost the task of a stream that broke is owed nothing', async () => {
  const { service } = await serveRaw(calls.world, (exchange) => {
    const { request, response, error } = exchange;
    if (request.method !== 'SendStreamingMessage') return error(-32001, 'Task not found');
    writeEvent(exchange, taskResult('t-lost', 'WORKING'));
    writeEvent(exchange, artifactEvent('t-lost', 'half of it'));
    response.write(': \n\n', () => setImmediate(() => response.destroy()));
  });
  expect(
    await calls.spent(async () => {
      expect(await STREAMED_CHAT.ask(calls, service)).toMatchObject({
        state: 'failed',
        cost: 0,
        error: expect.stringContaining('Task not found'),
      });
      expect(await calls.locked()).toBe(0n);
    }),
  ).toBe(0n);
});

test('canceled at another door, what it is charged is told at this one', async () => {
  let more = () => {};
  const { service, url } = await serveRaw(calls.world, (exchange) => {
    const { request, result } = exchange;
    if (request.method === 'CancelTask') return result(taskResult('t-elsewhere', 'CANCELED').task);
    writeEvent(exchange, taskResult('t-elsewhere', 'WORKING'));
    writeEvent(exchange, artifactEvent('t-elsewhere', 'half of it'));
    more = () => writeEvent(exchange, taskResult('t-elsewhere', 'SUBMITTED'));
  });
  expect(
    await calls.spent(async () => {
      const heard = Promise.withResolvers<void>();
      const asked = STREAMED_CHAT.ask(calls, service, (text) => text.includes('half of it') && heard.resolve());
      await heard.promise;
      await calls.talk(url).call('CancelTask', { id: 't-elsewhere' });
      more();
      expect(await asked).toMatchObject({ state: 'canceled', cost: PRICE, finish: 'length' });
    }),
  ).toBe(MESSAGE_PRICE);
});
