import type { ServerResponse } from 'node:http';
import { expect, test } from 'vitest';
import { events, json } from '../sessions/scripted-server.ts';
import { call, messagesOf, startAggregateSpine, streamOf, until } from './aggregate-spine.ts';
import { startPartServer } from './part-server.ts';

async function world() {
  const waiting: ServerResponse[] = [];
  const answer: Parameters<typeof startPartServer>[0] = ({ message }, response) => {
    if (message.method !== 'tools/call') return;
    if ((message.params!['arguments'] as { wait?: boolean }).wait) {
      waiting.push(
        events(
          response,
          ': begun\n\n',
          'data: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}\n\n',
        ),
      );
    } else json(response, { jsonrpc: '2.0', id: message.id, result: { content: [] } });
  };
  const [one, two] = [await startPartServer(answer), await startPartServer(answer)];
  const spine = await startAggregateSpine(
    { 'acme/one': one.url, 'acme/two': two.url },
    { toml: '[billing]\ndrain_ms = 200\n' },
  );
  const session = await spine.initialize();
  const tell = async (method: string, params?: object) =>
    (await spine.send({ jsonrpc: '2.0', method, params }, session)).status;
  return { one, two, waiting, spine, session, tell };
}

test('a request is cancelled at the part that it runs in, and costs nothing', async () => {
  const { one, two, spine, session, tell } = await world();
  await messagesOf(await spine.send(call(1, 'acme_two__ask'), session));
  const before = (await spine.balance()).available;
  const stream = streamOf(await spine.send(call('x', 'acme_one__ask', { wait: true }), session));
  await stream.next();
  expect(await tell('notifications/cancelled', { requestId: 'x', reason: 'enough' })).toBe(202);
  expect(await stream.rest()).toEqual([]);
  expect(one.heard('notifications/cancelled')).toMatchObject([
    { message: { params: { requestId: 'x', reason: 'enough' } } },
  ]);
  expect(two.heard('notifications/cancelled')).toEqual([]);
  await spine.quiet();
  expect((await spine.balance()).available).toBe(before);
  expect(await spine.faults()).toEqual([]);
});

test('changed roots are told to all open parts, a level as well, and both to no others', async () => {
  const { one, two, spine, session, tell } = await world();
  expect(await tell('notifications/roots/list_changed')).toBe(202);
  expect(await tell('notifications/initialized')).toBe(202);
  expect(one.heard('notifications/roots/list_changed')).toEqual([]);
  await messagesOf(await spine.send(call(1, 'acme_one__ask'), session));
  expect(await tell('notifications/roots/list_changed')).toBe(202);
  expect(
    await messagesOf(
      await spine.send({ jsonrpc: '2.0', id: 2, method: 'logging/setLevel', params: { level: 'debug' } }, session),
    ),
  ).toMatchObject([{ result: {} }]);
  expect(one.heard('notifications/roots/list_changed')).toHaveLength(1);
  expect(one.heard('logging/setLevel')).toHaveLength(1);
  expect(two.heard('notifications/roots/list_changed').length + two.heard('logging/setLevel').length).toBe(0);
  await messagesOf(await spine.send(call(3, 'acme_two__ask'), session));
  expect(two.heard('logging/setLevel')).toMatchObject([{ message: { params: { level: 'debug' } } }]);
});

test('each message of a batch is for its own part, and the responses come in one array', async () => {
  const { one, spine, session } = await world();
  const before = (await spine.balance()).available;
  const reply = await spine.send(
    [
      call(1, 'acme_one__ask'),
      call('2', 'acme_two__ask'),
      { jsonrpc: '2.0', id: 3, method: 'tools/list' },
      call(4, 'nobody__ask'),
      { jsonrpc: '2.0', method: 'notifications/roots/list_changed' },
      { jsonrpc: '2.0', id: 'nobody 1', result: {} },
    ],
    session,
  );
  expect(await reply.json()).toMatchObject([
    { id: 1, result: { content: [] } },
    { id: '2', result: { content: [] } },
    {
      id: 3,
      result: {
        tools: [{ name: 'acme_one__ask' }, { name: 'acme_two__ask' }, { name: 'find_tools' }, { name: 'ask_model' }],
      },
    },
    { id: 4, error: { code: -32602 } },
  ]);
  expect(one.heard('tools/call')).toHaveLength(1);
  expect(before - (await spine.balance()).available).toBe(2_000n);
  expect(await spine.faults()).toEqual([]);
});

test('a request under the id of one that runs is refused', async () => {
  const { waiting, spine, session } = await world();
  const stream = streamOf(await spine.send(call(1, 'acme_one__ask', { wait: true }), session));
  await stream.next();
  const again = await spine.send(call(1, 'acme_two__ask'), session);
  expect([again.status, await again.json()]).toMatchObject([200, { id: 1, error: { code: -32600 } }]);
  await until(() => waiting.length === 1);
  waiting[0]!.end('data: {"jsonrpc":"2.0","id":1,"result":{"content":[]}}\n\n');
  expect((await stream.rest()).at(-1)).toMatchObject({ id: 1, result: {} });
  expect(await spine.faults()).toEqual([]);
});
