import { expect, test } from 'vitest';
import { startBridge } from './bridge.ts';
import { startLegacyServer, textOf } from './legacy-server.ts';
import { startRawServer } from './raw-legacy-server.ts';

const CALL = ['tools/call', { name: 't' }] as const;

test.each([
  ['of a missing resource is that of wrong parameters', -32_002, -32_602, 200],
  ['of an unknown method comes with its status', -32_601, -32_601, 404],
  ['of the server itself stays', -32_099, -32_099, 200],
  ['that asks for URLs and names none is one of the server', -32_042, -32_603, 200],
])('an error %s', async (_what, code, expected, status) => {
  const server = await startRawServer(
    ({ message }) =>
      `{"jsonrpc":"2.0","id":${message.id},"error":{"code":${code},"message":"no","data":{"uri":"a:b", "n":1.0}}}`,
  );
  const bridge = await startBridge(server.url);
  const reply = await bridge.post(...CALL);
  expect(reply.text).toBe(
    `{"jsonrpc":"2.0","id":0,"error":{"code":${expected},"message":"no","data":{"uri":"a:b", "n":1.0}}}`,
  );
  expect(reply.status).toBe(status);
  expect(bridge.endings).toEqual([`t: error ${code}, 0`]);
  expect(await bridge.faults()).toEqual([]);
});

test('an error status with a message of JSON-RPC is relayed, and free', async () => {
  const server = await startRawServer((_request, response) => {
    response
      .writeHead(418, { 'content-type': 'application/json' })
      .end('{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"a teapot"}}');
    return null;
  });
  const bridge = await startBridge(server.url);
  const reply = await bridge.post(...CALL, { id: 9 });
  expect(reply.status).toBe(418);
  expect(reply.text).toBe('{"jsonrpc":"2.0","id":9,"error":{"code":-32000,"message":"a teapot"}}');
  expect(bridge.endings).toEqual(['t: error -32000, 0']);
  expect(await bridge.faults()).toEqual([]);
});

test.each([
  ['that is no JSON-RPC', 'teapot'],
  ['whose result is no object', '{"jsonrpc":"2.0","id":1,"result":5}'],
])('an answer %s costs nothing and is not asked for again', async (_what, body) => {
  const server = await startRawServer(() => body);
  const bridge = await startBridge(server.url);
  const reply = await bridge.post(...CALL);
  expect(reply.status).toBe(502);
  expect(server.seen.filter(({ message }) => message.method === 'tools/call')).toHaveLength(1);
  expect(bridge.endings).toEqual(['t: released, 0']);
  expect(await bridge.faults()).toEqual([]);
});

test('a list is asked for at another provider where the first breaks off', async () => {
  const broken = await startRawServer((_request, response) => {
    response.destroy();
    return null;
  });
  const backup = await startLegacyServer();
  const bridge = await startBridge(broken.url, { fallbackUrl: backup.url });
  const methods = () => backup.seen.map(({ message }) => message.method);
  expect((await bridge.post('tools/list')).message.result?.['tools']).toBeInstanceOf(Array);
  expect(methods()).toContain('tools/list');
  expect(await bridge.faults()).toEqual([]);
});

test('a server that cannot be reached is left for another, as nothing was done there', async () => {
  const backup = await startLegacyServer();
  const bridge = await startBridge('http://127.0.0.1:9/mcp', { fallbackUrl: backup.url });
  const { message } = await bridge.post('tools/call', { name: 'echo', arguments: { text: 'hello' } });
  expect(textOf(message.result)).toBe('hello');
  expect(bridge.endings).toEqual(['echo: complete, 1000']);
  expect(await bridge.faults()).toEqual([]);
});

test('a tool that fails by its own words is free', async () => {
  const server = await startLegacyServer();
  const bridge = await startBridge(server.url);
  const reply = await bridge.post('tools/call', { name: 'fail' });
  expect(reply.message.result).toMatchObject({ isError: true, resultType: 'complete' });
  expect(bridge.endings).toEqual(['fail: isError, 0']);
  expect(await bridge.faults()).toEqual([]);
});

test('a legacy result cannot call itself unfinished', async () => {
  const server = await startRawServer(
    ({ message }) => `{"jsonrpc":"2.0","id":${message.id},"result":{"resultType":"input_required","content":[]}}`,
  );
  const bridge = await startBridge(server.url);
  expect((await bridge.post(...CALL)).message.result?.['resultType']).toBe('complete');
  expect(bridge.endings).toEqual(['t: complete, 1000']);
  expect(await bridge.faults()).toEqual([]);
});

test.each([
  ['a reply', (text: string) => text],
  ['an event', null],
])('the id of a response may be a string, in %s', async (_name, write) => {
  const server = await startRawServer(({ message }, response) => {
    const text = `{"jsonrpc":"2.0","id":"${message.id}","result":{"content":[]}}`;
    if (write !== null) return write(text);
    response.writeHead(200, { 'content-type': 'text/event-stream' }).end(`data: ${text}\n\n`);
    return null;
  });
  const bridge = await startBridge(server.url);
  expect((await bridge.post(...CALL, { id: 9 })).message).toMatchObject({ id: 9, result: { content: [] } });
  expect(bridge.endings).toEqual(['t: complete, 1000']);
  expect(await bridge.faults()).toEqual([]);
});
