import { expect, test } from 'vitest';
import { startBridge } from './bridge-world.ts';
import { type Reply, startRawServer, toolCall } from './raw-server.ts';

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

test.each([
  ['ends its stream without a response', (reply: Reply) => reply.end()],
  ['asks the client', (reply: Reply) => reply.event(`{"jsonrpc":"2.0","id":"?","result":${FORM}}`)],
])('a server that %s while a cancelled tool may still answer has not failed', async (_name, act) => {
  const asked = Promise.withResolvers<[string, Reply]>();
  const server = await startRawServer(({ id }, reply) => {
    reply.event(NOTE);
    asked.resolve([id, reply]);
  });
  const world = await startBridge(server.url, { cancelGraceMs: 60_000 });
  const session = world.session({ capabilities: { elicitation: {} } });
  const answer = world.ask(session, toolCall('5'));
  const [id, reply] = await asked.promise;
  world.bridge.cancel(session.id, 5);
  act({ ...reply, event: (text) => reply.event(text.replace('"?"', JSON.stringify(id))) });
  expect(await answer).toMatchObject({ text: null, charged: 0n });
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
