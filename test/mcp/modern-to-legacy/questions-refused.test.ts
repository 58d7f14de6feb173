import { expect, test } from 'vitest';
import { startBridge } from './bridge.ts';
import { EVENTS, startRawServer, type RawServer } from './raw-legacy-server.ts';

/** A server that asks in the middle of every request, and answers it with what the client said to that. */
function askingServer(method: string, params: object = {}): Promise<RawServer> {
  let respond: ((text: string) => void) | null = null;
  return startRawServer(({ message, text }, response) => {
    if (message.method === undefined) {
      response.writeHead(202).end();
      respond?.(text);
      return null;
    }
    const { id } = message;
    respond = (said) =>
      response.end(
        `data: ${JSON.stringify({ jsonrpc: '2.0', id, result: { content: [], said: JSON.parse(said) as unknown } })}\n\n`,
      );
    response.writeHead(200, EVENTS).write(`data: ${JSON.stringify({ jsonrpc: '2.0', id: 'q1', method, params })}\n\n`);
    return null;
  });
}

const FORM = { message: 'Name?', requestedSchema: { type: 'object', properties: {} } };
const all = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} };

test.each([
  ['elicitation/create', FORM, {}],
  ['elicitation/create', FORM, { elicitation: { url: {} } }],
  ['elicitation/create', { mode: 'url', message: 'Go', url: 'https://example.com' }, { elicitation: {} }],
  ['sampling/createMessage', { messages: [], maxTokens: 1 }, { elicitation: {}, roots: {} }],
  ['sampling/createMessage', { messages: [], maxTokens: 1, tools: [] }, { sampling: {} }],
  ['roots/list', {}, { sampling: {} }],
  ['tasks/list', {}, all],
])('%s that the client did not declare is refused towards the server: %j, %j', async (method, params, capabilities) => {
  const server = await askingServer(method, params);
  const bridge = await startBridge(server.url);
  const { message } = await bridge.post('tools/call', { name: 't' }, { capabilities });
  expect(message.result?.['said']).toEqual({
    jsonrpc: '2.0',
    id: 'q1',
    error: { code: -32_601, message: expect.stringContaining(method) },
  });
  expect(bridge.endings).toEqual(['t: complete, 1000']);
  expect(await bridge.faults()).toEqual([]);
});

test('a request that cannot wait for input is not made to', async () => {
  const server = await askingServer('roots/list');
  const bridge = await startBridge(server.url);
  const { message } = await bridge.post('tools/list', {}, { capabilities: all });
  expect(message.result).toMatchObject({ resultType: 'complete', said: { error: { code: -32_601 } } });
  expect(bridge.held.size).toBe(0);
});

test('a bare client is not asked', async () => {
  const server = await askingServer('elicitation/create', FORM);
  const bridge = await startBridge(server.url);
  const reply = await bridge.raw('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}');
  expect(await reply.json()).toMatchObject({ result: { said: { error: { code: -32_601 } } } });
  expect(await bridge.faults()).toEqual([]);
});

test('a ping of the server is answered', async () => {
  const server = await askingServer('ping');
  const bridge = await startBridge(server.url);
  const { message } = await bridge.post('tools/call', { name: 't' });
  expect(message.result?.['said']).toEqual({ jsonrpc: '2.0', id: 'q1', result: {} });
  expect(await bridge.faults()).toEqual([]);
});
