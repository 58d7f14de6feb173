import { expect, test } from 'vitest';
import { startBridge } from './bridge-world.ts';
import { startRawServer, toolCall } from './raw-server.ts';

const error = (code: number, data = '') =>
  `{"jsonrpc":"2.0","id":%,"error":{"message":"w\\u0061s","code":${code}${data},"more":1.0}}`;

test.each([
  [-32_020, -32_603],
  [-32_021, -32_602],
  [-32_022, -32_603],
  [-32_601, -32_601],
  [-32_602, -32_602],
  [-32_603, -32_603],
  [-32_000, -32_000],
  [12, 12],
])('the error %i reaches the client as %i, with everything else that it says', async (code, expected) => {
  const server = await startRawServer(({ id }, reply) => reply.json(error(code).replace('%', JSON.stringify(id))));
  const world = await startBridge(server.url);
  expect(await world.ask(world.session(), toolCall('7.0'))).toEqual({
    events: [],
    text: error(expected).replace('%', '7.0'),
    status: 200,
    charged: 0n,
  });
  expect(world.endings).toEqual([`tool: error ${code}, 0`]);
  expect(await world.faults()).toEqual([]);
});

test.each([400, 404, 429, 500])('an error that came with status %i goes out with 200', async (status) => {
  const server = await startRawServer(({ id }, reply) =>
    reply.json(error(-32_601).replace('%', JSON.stringify(id)), status),
  );
  const world = await startBridge(server.url);
  expect(await world.ask(world.session(), toolCall('1'))).toMatchObject({
    text: error(-32_601).replace('%', '1'),
    status: 200,
    charged: 0n,
  });
  expect(await world.faults()).toEqual([]);
});

test('an error about a request that the server could not read is the answer to it', async () => {
  const server = await startRawServer((_got, reply) => reply.json(error(-32_700).replace('%', 'null'), 400));
  const world = await startBridge(server.url);
  expect(await world.ask(world.session(), toolCall('"a"'))).toMatchObject({
    text: error(-32_700).replace('%', '"a"'),
    status: 200,
  });
  expect(await world.faults()).toEqual([]);
});

test.each([
  [',"data":{"uri":"test://a"}', -32_002],
  [',"data":{"uri":"test://b"}', -32_602],
  ['', -32_602],
])('a resource that is not there has the code that legacy servers have for it: %s', async (data, expected) => {
  const server = await startRawServer(({ id }, reply) =>
    reply.json(error(-32_602, data).replace('%', JSON.stringify(id))),
  );
  const world = await startBridge(server.url);
  const { text } = await world.ask(world.session(), { id: 1, method: 'resources/read', params: { uri: 'test://a' } });
  expect(text).toBe(error(expected, data).replace('%', '1'));
});
