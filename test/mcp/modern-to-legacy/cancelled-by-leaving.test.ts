import { once } from 'node:events';
import { expect, test } from 'vitest';
import { startBridge } from './bridge.ts';
import { startLegacyServer } from './legacy-server.ts';

test('a client that closes its stream cancels its call at the server, and pays nothing', async () => {
  const server = await startLegacyServer();
  const bridge = await startBridge(server.url);
  const client = new AbortController();
  const hanging = once(server.events, 'hanging');
  const call = bridge.post('tools/call', { name: 'hang' }, { signal: client.signal });
  await hanging;
  const cancelled = once(server.events, 'cancelled');
  client.abort();
  await expect(call).rejects.toThrow();
  await cancelled;
  const { message } = server.seen.find((seen) => seen.message.method === 'tools/call')!;
  expect(
    server.seen.find((seen) => seen.message.method === 'notifications/cancelled')?.message.params?.['requestId'],
  ).toBe(message.id);
  await bridge.until(() => bridge.endings.length > 0);
  expect(bridge.endings).toEqual(['hang: cancelled, 0']);
  expect(await bridge.heldLocks()).toBe(0);
  expect(await bridge.faults()).toEqual([]);
});

test('a call that takes too long is cancelled at the server', async () => {
  const server = await startLegacyServer();
  const bridge = await startBridge(server.url, { timeoutMs: 1_000 });
  const cancelled = once(server.events, 'cancelled');
  const reply = await bridge.post('tools/call', { name: 'hang' });
  expect(reply.status).toBe(502);
  await cancelled;
  expect(await bridge.heldLocks()).toBe(0);
  expect(await bridge.faults()).toEqual([]);
});
