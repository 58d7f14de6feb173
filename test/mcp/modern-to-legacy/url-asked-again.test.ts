import { expect, test } from 'vitest';
import { startBridge } from './bridge.ts';
import { startLegacyServer } from './legacy-server.ts';

test('an error that names URLs asks the client to open them, and the next round makes the request anew', async () => {
  const server = await startLegacyServer();
  const bridge = await startBridge(server.url);
  const capabilities = { elicitation: { url: {} } };
  const first = await bridge.post('tools/call', { name: 'open-page' }, { capabilities });
  const requests = first.message.result!['inputRequests'] as Record<string, unknown>;
  expect(first.message.result?.['resultType']).toBe('input_required');
  expect(Object.values(requests)).toEqual([
    {
      method: 'elicitation/create',
      params: { mode: 'url', message: 'Sign in', elicitationId: 'e1', url: 'https://example.com/sign-in' },
    },
  ]);
  expect(bridge.held.size).toBe(0);
  expect(await bridge.heldLocks()).toBe(1);
  const round = {
    inputResponses: { [Object.keys(requests)[0]!]: { action: 'accept' } },
    requestState: first.message.result!['requestState'],
  };
  const second = await bridge.post('tools/call', { name: 'open-page', ...round }, { capabilities });
  expect(second.message.result?.['resultType']).toBe('input_required');
  const calls = server.seen.filter(({ message }) => message.method === 'tools/call');
  expect(calls.map(({ message }) => message.params)).toEqual([{ name: 'open-page' }, { name: 'open-page' }]);
  expect(await bridge.heldLocks()).toBe(1);
  expect(await bridge.faults()).toEqual([]);
});

test('a client that opens no URLs hears which capability it lacks', async () => {
  const server = await startLegacyServer();
  const bridge = await startBridge(server.url);
  const { status, message } = await bridge.post(
    'tools/call',
    { name: 'open-page' },
    { capabilities: { elicitation: {} } },
  );
  expect(status).toBe(400);
  expect(message.error).toMatchObject({ code: -32_021, data: { requiredCapabilities: { elicitation: { url: {} } } } });
  expect(bridge.endings).toEqual(['open-page: error -32021, 0']);
  expect(await bridge.heldLocks()).toBe(0);
  expect(await bridge.faults()).toEqual([]);
});
