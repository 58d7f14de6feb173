import { expect, test } from 'vitest';
import { startSpine } from '../../support/spine.ts';
import { toolToml } from '../calls/modern-post.ts';
import { json, startScripted } from '../sessions/scripted-server.ts';
import { PRICE } from '../sessions/session-world.ts';

const call = (id: number) => ({ jsonrpc: '2.0', id, method: 'tools/call', params: { name: 't', arguments: {} } });

test('each message of a batch counts against the rate', async () => {
  const server = await startScripted({
    answer: ({ message }, response) => json(response, { jsonrpc: '2.0', id: message.id, result: { content: [] } }),
  });
  const spine = await startSpine({
    toml: `${toolToml({ name: 'acme', url: server.url })}\n[limits]\nrequests_per_minute = 30\nburst = 10\n`,
  });
  const headers = { accept: 'application/json, text/event-stream' };
  const opened = await spine.post(
    '/mcp/acme',
    {
      jsonrpc: '2.0',
      id: 0,
      method: 'initialize',
      params: { protocolVersion: '2025-03-26', capabilities: {}, clientInfo: { name: 't', version: '1' } },
    },
    headers,
  );
  const session = { ...headers, 'mcp-session-id': opened.headers.get('mcp-session-id')! };
  const batch = (from: number, size: number) => Array.from({ length: size }, (_, i) => call(from + i));
  const first = await spine.post('/mcp/acme', batch(0, 30), session);
  expect([first.status, ((await first.json()) as unknown[]).length]).toEqual([200, 30]);
  const second = await spine.post('/mcp/acme', batch(100, 30), session);
  expect([second.status, second.headers.has('retry-after')]).toEqual([429, true]);
  expect((await spine.balance()).available).toBe(100_000_000n - 30n * PRICE);
  expect(await spine.faults()).toEqual([]);
  await spine.stop();
});
