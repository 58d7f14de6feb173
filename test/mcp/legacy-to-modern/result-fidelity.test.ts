import fc from 'fast-check';
import { expect, test } from 'vitest';
import { startBridge } from './bridge-world.ts';
import { startRawServer, toolCall } from './raw-server.ts';
import { value } from '../../foundation/wire/json/json-text.ts';

test('results come back byte by byte, whatever stands in them', async () => {
  let result = '';
  const server = await startRawServer(({ id }, reply) =>
    reply.json(`{"result": ${result},"id":${JSON.stringify(id)} ,"jsonrpc":"2.0","z":1.0}`),
  );
  const world = await startBridge(server.url);
  const session = world.session();
  await fc.assert(
    fc.asyncProperty(value, value, async (first, second) => {
      const rest = `"content":[{"type":"text","text":"t","a":${first}}] , "ttlMs":1.0,"\\u0078":${second},"_meta":{"n":12345678901234567890}`;
      result = `{"resultType" :"complete",${rest}}`;
      const { text } = await world.ask(session, toolCall('"\\u0069d"'));
      expect(text).toBe(`{"result": {${rest}},"id":"\\u0069d" ,"jsonrpc":"2.0","z":1.0}`);
    }),
    { numRuns: 100 },
  );
  expect(await world.faults()).toEqual([]);
});

test.each(['tools/list', 'resources/list', 'resources/templates/list', 'prompts/list', 'resources/read'])(
  '%s loses what the modern revision says of caching, and nothing else',
  async (method) => {
    const server = await startRawServer((_got, reply) =>
      reply.result(
        '{"ttlMs":1, "contents":[],"list":[1.0],"resultType":"complete","cacheScope":"private","nextCursor":"c"}',
      ),
    );
    const world = await startBridge(server.url);
    const { text, status } = await world.ask(world.session(), { id: 1, method, params: { uri: 'test://a' } });
    expect(text).toBe('{"jsonrpc":"2.0","id":1,"result":{"contents":[],"list":[1.0],"nextCursor":"c"}}');
    expect(status).toBe(200);
  },
);

test('a result without a type is one that is complete', async () => {
  const server = await startRawServer((_got, reply) => reply.result('{"content":[]}'));
  const world = await startBridge(server.url);
  expect(await world.ask(world.session(), toolCall('1'))).toMatchObject({
    text: '{"jsonrpc":"2.0","id":1,"result":{"content":[]}}',
    charged: 1_000n,
  });
  expect(await world.faults()).toEqual([]);
});

test('names that the turn changes are changed in notifications and in the response', async () => {
  const server = await startRawServer(({ id }, reply) => {
    reply.event('{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"theirs"}}');
    reply.event(
      `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":{"resultType":"complete","content":[{"type":"text","text":"theirs"}]}}`,
    );
  });
  const world = await startBridge(server.url);
  const { events, text } = await world.ask(world.session(), toolCall('1'), {
    toClient: (message) => message.replaceAll('theirs', 'ours'),
  });
  expect([...events, text].every((message) => message!.includes('ours'))).toBe(true);
});
