import { expect, onTestFinished, test } from 'vitest';
import { createHeldCalls, createQuestions } from '../../../src/mcp/servers/held-calls.ts';
import type { SessionCall } from '../../../src/mcp/servers/session-call.ts';
import { OTHER_ACCOUNT, startBridge, type Bridge } from './bridge.ts';
import { startLegacyServer, textOf, type LegacyServer } from './legacy-server.ts';

const capabilities = { elicitation: {} };

/** A call that is held, and the round that answers it. */
async function heldCall(server: LegacyServer, bridge: Bridge) {
  const { message } = await bridge.post('tools/call', { name: 'ask' }, { capabilities });
  const [key] = Object.keys(message.result!['inputRequests'] as object);
  expect(server.seen.at(-1)?.message.method).toBe('tools/call');
  return {
    inputResponses: { [key!]: { action: 'accept', content: { name: 'Ann' } } },
    requestState: message.result!['requestState'] as string,
  };
}

test('a state that is used twice gets work once', async () => {
  const server = await startLegacyServer();
  const bridge = await startBridge(server.url);
  const round = await heldCall(server, bridge);
  const both = await Promise.all(
    [1, 2].map(() => bridge.post('tools/call', { name: 'ask', ...round }, { capabilities })),
  );
  expect(
    both.filter(({ message }) => message.result !== undefined).map(({ message }) => textOf(message.result)),
  ).toEqual(['accept Ann']);
  const refused = both.find(({ message }) => message.error)!;
  expect(refused.message.error).toMatchObject({
    code: -32_602,
    message: expect.stringContaining('was already used, has expired'),
  });
  expect(server.seen.filter(({ message }) => message.result !== undefined)).toHaveLength(1);
  expect(bridge.endings.toSorted()).toEqual(['ask: complete, 1000', 'ask: error -32602, 0', 'ask: input_required, 0']);
  expect(await bridge.heldLocks()).toBe(0);
  expect(await bridge.faults()).toEqual([]);
});

test("another account's state is refused, and the call stays held for its own", async () => {
  const server = await startLegacyServer();
  const bridge = await startBridge(server.url);
  const round = await heldCall(server, bridge);
  const stolen = await bridge.post('tools/call', { name: 'ask', ...round }, { capabilities, account: OTHER_ACCOUNT });
  expect(stolen.message.error?.code).toBe(-32_602);
  const right = await bridge.post('tools/call', { name: 'ask', ...round }, { capabilities });
  expect(textOf(right.message.result)).toBe('accept Ann');
  expect(await bridge.faults()).toEqual([]);
});

test('a held call is taken by its own account alone', () => {
  const held = createHeldCalls({ nodeId: 'n', perAccountMax: 1, perOfferMax: 1 });
  onTestFinished(held.close);
  const call = { cancel: () => {} } as unknown as SessionCall;
  const wanted = { account: 'a', offerId: 'o', method: 'tools/call', name: 't' };
  const hold = () => held.hold({ ...wanted, call, questions: createQuestions() });
  const id = hold();
  for (const other of [{ account: 'b' }, { offerId: 'p' }, { method: 'prompts/get' }, { name: 'u' }])
    expect(held.take(id, { ...wanted, ...other })).toBe(null);
  expect(held.take(id, wanted)).toMatchObject({ account: 'a' });
  expect(held.take(id, wanted)).toBe(null);
  expect(hold()).not.toBe(id);
});

test('the state of one tool does not go on with another', async () => {
  const server = await startLegacyServer();
  const bridge = await startBridge(server.url);
  const round = await heldCall(server, bridge);
  const other = await bridge.post('tools/call', { name: 'echo', arguments: { text: 'a' }, ...round }, { capabilities });
  expect(other.message.error).toMatchObject({
    code: -32_602,
    message: expect.stringContaining('belongs to another request'),
  });
  expect(bridge.held.size).toBe(1);
  expect(await bridge.faults()).toEqual([]);
});

test('a call that another gateway holds is told from one that is gone', async () => {
  const server = await startLegacyServer();
  const [here, there] = await Promise.all([
    startBridge(server.url),
    startBridge(server.url, { held: { nodeId: 'node-2' } }),
  ]);
  const round = await heldCall(server, here);
  const { message } = await there.post('tools/call', { name: 'ask', ...round }, { capabilities });
  expect(message.error).toMatchObject({ code: -32_602, message: expect.stringContaining('another gateway') });
  const right = await here.post('tools/call', { name: 'ask', ...round }, { capabilities });
  expect(textOf(right.message.result)).toBe('accept Ann');
});
