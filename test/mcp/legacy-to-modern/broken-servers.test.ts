import { expect, test } from 'vitest';
import { startBridge } from './bridge-world.ts';
import { startRawServer, toolCall, type Got, type Reply } from './raw-server.ts';

const own = ({ id }: Got) => JSON.stringify(id);

const BROKEN: Readonly<Record<string, (got: Got, reply: Reply) => void>> = {
  'a result that is no object': (_got, reply) => reply.result('[]'),
  'no JSON': (_got, reply) => reply.json('<html>'),
  'the response to another request': (_got, reply) => reply.json('{"jsonrpc":"2.0","id":"x","result":{}}'),
  'events and no response': (_got, reply) => {
    reply.event('{"jsonrpc":"2.0","method":"notifications/message","params":{}}');
    reply.end();
  },
  'a connection that breaks': (_got, reply) => void reply.raw.destroy(),
  'a status of credentials': (got, reply) =>
    reply.json(`{"jsonrpc":"2.0","id":${own(got)},"error":{"code":-32001,"message":"no"}}`, 401),
  'input that is asked in no way': (_got, reply) => reply.result('{"resultType":"input_required"}'),
  'input of an unknown kind': (_got, reply) =>
    reply.result('{"resultType":"input_required","inputRequests":{"a":{"method":"files/delete","params":{}}}}'),
  'a second question with a key that stands twice': (_got, reply) =>
    reply.result(
      '{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create"},"b":{"method":"elicitation/create","method":"elicitation/create"}}}',
    ),
  'a state that is no text': (_got, reply) => reply.result('{"resultType":"input_required","requestState":{}}'),
};

test.each(Object.entries(BROKEN))(
  '%s is the failure of the provider: it is asked once, and nothing is charged',
  async (_what, answer) => {
    const server = await startRawServer(answer);
    const world = await startBridge(server.url, { replyBytesMax: 4_096 });
    await expect(world.ask(world.session({ capabilities: { elicitation: {} } }), toolCall('1'))).rejects.toMatchObject({
      code: 'provider_unavailable',
    });
    expect(server.got).toHaveLength(1);
    expect(world.endings).toEqual(['tool: released, 0']);
    expect([world.bridge.running, world.clientRequests.count]).toEqual([0, 0]);
    expect(await world.faults()).toEqual([]);
  },
);

test('a result with a key that stands twice is an error that says so, and free', async () => {
  const server = await startRawServer((_got, reply) => reply.result('{"content":[],"content":[]}'));
  const world = await startBridge(server.url);
  const { text } = await world.ask(world.session(), toolCall('1'));
  expect(text).toContain('a member must not occur twice. Nothing is charged');
  expect(await world.faults()).toEqual([]);
});

test('what is free, and what never reached the server, may be tried at another', async () => {
  const server = await startRawServer((_got, reply) => void reply.raw.destroy());
  const world = await startBridge(server.url);
  await expect(world.ask(world.session(), { id: 1, method: 'tools/list' })).rejects.toMatchObject({
    cause: { retryable: true },
  });
  await server.stop();
  await expect(world.ask(world.session(), toolCall('1'))).rejects.toMatchObject({
    cause: { retryable: true, unsent: true },
  });
  expect(await world.faults()).toEqual([]);
});

test('a later round is never tried at another server', async () => {
  const server = await startRawServer(({ params }, reply) => {
    if (params['requestState'] === undefined) reply.result('{"resultType":"input_required","requestState":"s"}');
    else reply.raw.destroy();
  });
  const world = await startBridge(server.url);
  await expect(
    world.ask(world.session(), { id: 1, method: 'prompts/get', params: { name: 'p' } }),
  ).rejects.toMatchObject({
    cause: { retryable: false },
  });
  expect(server.got).toHaveLength(2);
});

test('a list cannot ask for input', async () => {
  const server = await startRawServer((_got, reply) =>
    reply.result('{"resultType":"input_required","requestState":"s"}'),
  );
  const world = await startBridge(server.url);
  await expect(world.ask(world.session(), { id: 1, method: 'tools/list' })).rejects.toMatchObject({
    code: 'provider_unavailable',
  });
});

test('a result of a type that no client with a session knows is an error, and free', async () => {
  const server = await startRawServer((_got, reply) => reply.result('{"resultType":"task","task":{"taskId":"1"}}'));
  const world = await startBridge(server.url);
  const { text, charged } = await world.ask(world.session(), toolCall('1'));
  expect(JSON.parse(text!)).toMatchObject({
    error: { code: -32_603, message: expect.stringContaining('"task"') as string },
  });
  expect(charged).toBe(0n);
  expect(await world.faults()).toEqual([]);
});

test('requests of a server, and what it says of the exchange, are not handed on', async () => {
  const server = await startRawServer((got, reply) => {
    reply.event('{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{}}');
    reply.event(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":${own(got)}}}`);
    reply.event('{"jsonrpc":"2.0","id":"other","result":{}}');
    reply.event(`{"jsonrpc":"2.0","id":${own(got)},"result":{"content":[]}}`);
  });
  const world = await startBridge(server.url);
  expect(await world.ask(world.session(), toolCall('1'))).toMatchObject({
    events: [],
    text: '{"jsonrpc":"2.0","id":1,"result":{"content":[]}}',
  });
  expect(await world.faults()).toEqual([]);
});
