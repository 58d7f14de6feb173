import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { startBridge } from './bridge.ts';
import { startLegacyServer, textOf } from './legacy-server.ts';

const CALL = ['tools/call', { name: 'echo', arguments: { text: 'hello' } }] as const;

test('a server that keeps no sessions is called all the same', async () => {
  const server = await startLegacyServer({ stateless: true });
  const bridge = await startBridge(server.url);
  expect(textOf((await bridge.post(...CALL)).message.result)).toBe('hello');
  expect(textOf((await bridge.post(...CALL, { capabilities: { elicitation: {} } })).message.result)).toBe('hello');
  expect(server.seen.every(({ http }) => http === 'POST')).toBe(true);
  expect(await bridge.faults()).toEqual([]);
});

test('an endpoint that knows neither handshake gets the request alone', async () => {
  const seen: string[] = [];
  const http = createServer((request, response) => {
    let text = '';
    request.on('data', (chunk: Buffer) => (text += chunk.toString()));
    request.on('end', () => {
      const { id, method } = JSON.parse(text) as { id: number; method: string };
      seen.push(method);
      const body =
        method === 'tools/call'
          ? { result: { content: [{ type: 'text', text: 'bare' }] } }
          : { error: { code: -32_601, message: 'Method not found' } };
      response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify({ jsonrpc: '2.0', id, ...body }));
    });
  });
  http.listen(0, '127.0.0.1');
  await once(http, 'listening');
  onTestFinished(() => void http.close());
  const bridge = await startBridge(`http://127.0.0.1:${(http.address() as AddressInfo).port}`);
  expect(textOf((await bridge.post(...CALL)).message.result)).toBe('bare');
  expect(textOf((await bridge.post(...CALL)).message.result)).toBe('bare');
  expect(seen).toEqual(['server/discover', 'initialize', 'tools/call', 'tools/call']);
  expect(await bridge.faults()).toEqual([]);
});
