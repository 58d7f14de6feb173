import { once } from 'node:events';
import { expect, test } from 'vitest';
import { OTHER_ACCOUNT, startBridge } from './bridge.ts';
import { EVENTS, startRawServer } from './raw-legacy-server.ts';
import { startLegacyServer, textOf, type Seen } from './legacy-server.ts';

const capabilities = { elicitation: {} };
const answer = (result: Record<string, unknown>, name: string) => {
  const [key] = Object.keys(result['inputRequests'] as object);
  return {
    name: 'ask',
    inputResponses: { [key!]: { action: 'accept', content: { name } } },
    requestState: result['requestState'],
  };
};

test('a call that nobody goes on with is cancelled at the server, and its state is of no use', async () => {
  const server = await startLegacyServer();
  const bridge = await startBridge(server.url, { held: { ttlMs: 300 } });
  const { message } = await bridge.post('tools/call', { name: 'ask' }, { capabilities });
  const seen = (method: string) => server.seen.find((one) => one.message.method === method)?.message;
  // It may have come already: the time of a held call is short here.
  await expect.poll(() => seen('notifications/cancelled')).toBeDefined();
  expect(seen('notifications/cancelled')!.params?.['requestId']).toBe(seen('tools/call')!.id);
  expect(bridge.held.size).toBe(0);
  const late = await bridge.post('tools/call', answer(message.result!, 'Ann'), { capabilities });
  expect(late.message.error?.code).toBe(-32_602);
  expect(bridge.endings).toEqual(['ask: input_required, 0', 'ask: error -32602, 0']);
  expect(await bridge.faults()).toEqual([]);
});

test('an account holds so many calls at once, whatever others hold', async () => {
  const server = await startLegacyServer();
  const bridge = await startBridge(server.url, { held: { perAccountMax: 1 } });
  const first = await bridge.post('tools/call', { name: 'ask' }, { capabilities });
  const cancelled = once(server.events, 'cancelled-message');
  const second = await bridge.post('tools/call', { name: 'ask' }, { capabilities });
  expect(second.status).toBe(429);
  const calls = server.seen.filter(({ message }) => message.method === 'tools/call');
  expect(await cancelled).toEqual([calls[1]?.message.id]);
  expect(second.message.error?.message).toContain('wait for input');
  const other = await bridge.post('tools/call', { name: 'ask' }, { capabilities, account: OTHER_ACCOUNT });
  expect(other.message.result?.['resultType']).toBe('input_required');
  expect(bridge.held.size).toBe(2);
  const done = await bridge.post('tools/call', answer(first.message.result!, 'Ann'), { capabilities });
  expect(textOf(done.message.result)).toBe('accept Ann');
  const third = await bridge.post('tools/call', { name: 'ask' }, { capabilities });
  expect(third.message.result?.['resultType']).toBe('input_required');
  expect(await bridge.faults()).toEqual([]);
});

test.each([{ max: 4 }, { perOfferMax: 4 }])('an account holds as many as it leaves free: %j', async (bounds) => {
  const server = await startLegacyServer();
  const bridge = await startBridge(server.url, { held: bounds });
  const ask = (more = {}) => bridge.post('tools/call', { name: 'ask' }, { capabilities, ...more });
  const greedy = [await ask(), await ask(), await ask()];
  expect(greedy.map(({ status }) => status)).toEqual([200, 200, 429]);
  const other = await ask({ account: OTHER_ACCOUNT });
  expect(other.message.result?.['resultType']).toBe('input_required');
  expect(await bridge.faults()).toEqual([]);
});

test.each([{ max: 1 }, { perOfferMax: 1 }])('a gateway holds so many calls at once: %j', async (bounds) => {
  const server = await startLegacyServer();
  const bridge = await startBridge(server.url, { held: bounds });
  await bridge.post('tools/call', { name: 'ask' }, { capabilities });
  const other = await bridge.post('tools/call', { name: 'ask' }, { capabilities, account: OTHER_ACCOUNT });
  expect(other.status).toBe(503);
  expect(bridge.held.size).toBe(1);
  expect(await bridge.heldLocks()).toBe(1);
  expect(await bridge.faults()).toEqual([]);
});

test('a gateway that closes cancels what it holds', async () => {
  const server = await startLegacyServer();
  const bridge = await startBridge(server.url);
  await bridge.post('tools/call', { name: 'ask' }, { capabilities });
  const cancelled = once(server.events, 'seen');
  bridge.held.close();
  const [seen] = (await cancelled) as [Seen];
  expect(seen.message.method).toBe('notifications/cancelled');
  expect(bridge.held.size).toBe(0);
});

test('a server that goes away while its call is held costs nothing', async () => {
  const server = await startLegacyServer();
  const bridge = await startBridge(server.url);
  const { message } = await bridge.post('tools/call', { name: 'ask' }, { capabilities });
  server.cut();
  const reply = await bridge.post('tools/call', answer(message.result!, 'Ann'), { capabilities });
  expect(reply.status).toBe(502);
  expect(bridge.held.size).toBe(0);
  expect(bridge.endings).toEqual(['ask: input_required, 0', 'ask: released, 0']);
  expect(await bridge.heldLocks()).toBe(0);
  expect(await bridge.faults()).toEqual([]);
});

test('a server that does not take the answer to its question costs nothing', async () => {
  const server = await startRawServer(({ message }, response) => {
    if (message.method === undefined) response.writeHead(400).end();
    else
      response
        .writeHead(200, EVENTS)
        .write('data: {"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{}}\n\n');
    return null;
  });
  const bridge = await startBridge(server.url);
  const { message } = await bridge.post('tools/call', { name: 'ask' }, { capabilities });
  const reply = await bridge.post('tools/call', answer(message.result!, 'Ann'), { capabilities });
  expect(reply.status).toBe(502);
  expect(bridge.held.size).toBe(0);
  expect(bridge.endings).toEqual(['ask: input_required, 0', 'ask: released, 0']);
  expect(await bridge.heldLocks()).toBe(0);
  expect(await bridge.faults()).toEqual([]);
});
