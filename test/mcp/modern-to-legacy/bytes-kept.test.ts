import { expect, test } from 'vitest';
import { MODERN } from '../../../src/mcp/wire/revisions.ts';
import { startBridge } from './bridge.ts';
import { startRawServer, type RawServer } from './raw-legacy-server.ts';

const ENVELOPE = `"io.modelcontextprotocol/protocolVersion":"${MODERN}","io.modelcontextprotocol/clientCapabilities":{}`;
const headers = (method: string, name?: string) => ({
  'mcp-protocol-version': MODERN,
  'mcp-method': method,
  ...(name === undefined ? {} : { 'mcp-name': name }),
});
const called = ({ seen }: RawServer) =>
  seen.filter(({ message }) => message.method?.startsWith('tools/') || message.method?.startsWith('resources/'));

/** A server whose results are `result`, under ids that it writes with spaces. */
const resulting = (result: string) =>
  startRawServer(({ message }) => `{ "result" : ${result}, "id" : ${message.id}, "jsonrpc":"2.0" }`);

test('a request goes out with its own characters, less the envelope', async () => {
  const server = await resulting('{"content":[]}');
  const bridge = await startBridge(server.url);
  const send = (meta: string, more = '') =>
    bridge.raw(
      `{"params" : { ${more}"name":"t",  "arguments":{"n":1.0,"big":12345678901234567890,"é":"\\u00e9"},"_meta":{${meta}} , "x":[ ] },"method":"tools/call","id":"a\\u0062","jsonrpc":"2.0"}`,
      headers('tools/call', 't'),
    );
  await (await send(ENVELOPE)).text();
  await (await send(`"mine": {"a" :1}, ${ENVELOPE},"progressToken":"p"`, '"inputResponses":{"k":{}},')).text();
  const sent = called(server).map(({ text }) => text);
  expect(sent[0]).toBe(
    '{"params" : { "name":"t",  "arguments":{"n":1.0,"big":12345678901234567890,"é":"\\u00e9"} , "x":[ ] },"method":"tools/call","id":1,"jsonrpc":"2.0"}',
  );
  expect(sent[1]).toBe(
    '{"params" : { "name":"t",  "arguments":{"n":1.0,"big":12345678901234567890,"é":"\\u00e9"},"_meta":{"mine": {"a" :1},"progressToken":2} , "x":[ ] },"method":"tools/call","id":2,"jsonrpc":"2.0"}',
  );
  expect(await bridge.faults()).toEqual([]);
});

test('a result comes back with its own characters, and with what the modern revision asks for', async () => {
  const result =
    '{ "content":[{"type":"text","text":"t","n":1.50,"\\u0061":null}], "structuredContent": {"z":1,"a":2} ,"unknown":12345678901234567890,"contents":[],"_meta":{"k":[ 1 ]}}';
  const server = await resulting(result);
  const bridge = await startBridge(server.url);
  const post = async (method: string, params: string, name?: string) =>
    (
      await bridge.raw(
        `{"jsonrpc":"2.0","id":7.0,"method":"${method}","params":{${params}"_meta":{${ENVELOPE}}}}`,
        headers(method, name),
      )
    ).text();
  const inner = result.slice(0, -1);
  expect(await post('tools/call', '"name":"t",', 't')).toBe(
    `{ "result" : ${inner},"resultType":"complete"}, "id" : 7.0, "jsonrpc":"2.0" }`,
  );
  const cached = `{ "result" : ${inner},"resultType":"complete","ttlMs":0,"cacheScope":"private"}, "id" : 7.0, "jsonrpc":"2.0" }`;
  expect(await post('tools/list', '')).toBe(cached);
  expect(await post('resources/read', '"uri":"a:b",', 'a:b')).toBe(cached);
  expect(await bridge.faults()).toEqual([]);
});

test('a bare client gets the result alone, with its own characters', async () => {
  const result = '{"tools":[{"name":"t","inputSchema":{},"x":1.0}]}';
  const server = await resulting(result);
  const bridge = await startBridge(server.url);
  const reply = await bridge.raw('{"jsonrpc":"2.0","id":1,"method":"tools/list"}', { accept: 'application/json' });
  expect(await reply.text()).toBe(`{ "result" : ${result}, "id" : 1, "jsonrpc":"2.0" }`);
  expect(called(server)[0]?.text).toBe('{"jsonrpc":"2.0","id":1,"method":"tools/list"}');
});
