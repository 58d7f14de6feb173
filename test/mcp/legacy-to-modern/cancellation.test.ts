import { expect, test } from 'vitest';
import { startBridge } from './bridge-world.ts';
import { startRawServer, toolCall } from './raw-server.ts';

const NOTE = '{"jsonrpc":"2.0","method":"notifications/message","params":{}}';
const FORM = '{"resultType":"input_required","inputRequests":{"k":{"method":"elicitation/create","params":{}}}}';

test.each([
  ['before the server says anything', false],
  ['in the middle of its answer', true],
])(
  'a request that is cancelled %s is taken from the server, gets no response and costs nothing',
  async (_when, speaks) => {
    const arrived = Promise.withResolvers<void>();
    const server = await startRawServer((_got, reply) => {
      if (speaks) reply.event(NOTE);
      arrived.resolve();
    });
    const world = await startBridge(server.url);
    const session = world.session();
    const heard = Promise.withResolvers<void>();
    const answer = world.ask(session, toolCall('5'), { onEvent: () => heard.resolve() });
    await arrived.promise;
    if (speaks) await heard.promise;
    expect(world.bridge.cancel(session.id, 5, 'the user pressed stop')).toBe(true);
    expect(await answer).toMatchObject({ text: null, charged: 0n });
    await server.got[0]!.closed;
    expect(world.endings).toEqual(['tool: cancelled, 0']);
    expect(world.bridge.running).toBe(0);
    expect(await world.faults()).toEqual([]);
  },
);

test('a request that waits for its client is cancelled too, and its questions are not taken back one by one', async () => {
  const server = await startRawServer((_got, reply) => reply.result(FORM));
  const world = await startBridge(server.url);
  const session = world.session({ capabilities: { elicitation: {} } });
  const answer = await world.ask(session, toolCall('"5"'), {
    onEvent: () => void world.bridge.cancel(session.id, '5'),
  });
  expect(answer).toMatchObject({ text: null, charged: 0n });
  expect([answer.events.length, server.got.length, world.clientRequests.count]).toEqual([1, 1, 0]);
  expect(world.endings).toEqual(['tool: cancelled, 0']);
  expect(await world.faults()).toEqual([]);
});

test('nobody cancels a request of another session, with another id, or one that has ended', async () => {
  const asked = Promise.withResolvers<() => void>();
  const server = await startRawServer((_got, reply) => asked.resolve(() => reply.result('{"content":[]}')));
  const world = await startBridge(server.url);
  const session = world.session();
  const answer = world.ask(session, toolCall('5'));
  const go = await asked.promise;
  expect(world.bridge.cancel(world.session().id, 5)).toBe(false);
  expect(world.bridge.cancel(session.id, '5')).toBe(false);
  expect(world.bridge.cancel(session.id, 6)).toBe(false);
  go();
  expect(await answer).toMatchObject({ text: '{"jsonrpc":"2.0","id":5,"result":{"content":[]}}', charged: 1_000n });
  expect(world.bridge.cancel(session.id, 5)).toBe(false);
  expect(await world.faults()).toEqual([]);
});
