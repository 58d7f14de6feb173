import { expect, test } from 'vitest';
import { META } from '../../../src/mcp/wire/revisions.ts';
import { startBridge, type Message, type Reply } from './bridge.ts';
import { startLegacyServer, type LegacyServer } from './legacy-server.ts';

const metaOf = (params: Record<string, unknown> = {}) => params['_meta'] as { readonly progressToken: unknown };
const tokens = ({ events }: Reply) => events.map(({ params }) => params?.['progressToken']);
const levels = ({ events }: Reply) => events.map(({ params }: Message) => params?.['level']);
const setTo = ({ seen }: LegacyServer) =>
  seen.filter(({ message }) => message.method === 'logging/setLevel').map(({ message }) => message.params?.['level']);

test('progress comes under the token of the client, however many use the same', async () => {
  const server = await startLegacyServer();
  const bridge = await startBridge(server.url);
  const replies = await Promise.all(
    ['a', 'a', 0].map((progressToken) => bridge.post('tools/call', { name: 'progress' }, { meta: { progressToken } })),
  );
  expect(replies.map(tokens)).toEqual([
    ['a', 'a'],
    ['a', 'a'],
    [0, 0],
  ]);
  expect(replies.map(({ events }) => events.map(({ params }) => params?.['progress']))).toEqual([
    [1, 2],
    [1, 2],
    [1, 2],
  ]);
  const asked = server.seen
    .filter(({ message }) => message.method === 'tools/call')
    .map(({ message }) => metaOf(message.params).progressToken);
  expect(new Set(asked).size).toBe(3);
  expect(await bridge.faults()).toEqual([]);
});

test('progress after a round comes under the token of that round', async () => {
  const server = await startLegacyServer();
  const bridge = await startBridge(server.url);
  const capabilities = { elicitation: {} };
  const first = await bridge.post(
    'tools/call',
    { name: 'progress-and-ask' },
    { capabilities, meta: { progressToken: 'one' } },
  );
  expect(tokens(first)).toEqual(['one']);
  const [key] = Object.keys(first.message.result!['inputRequests'] as object);
  const round = {
    inputResponses: { [key!]: { action: 'accept', content: { name: 'Ann' } } },
    requestState: first.message.result!['requestState'],
  };
  const second = await bridge.post(
    'tools/call',
    { name: 'progress-and-ask', ...round },
    { capabilities, meta: { progressToken: 'two' } },
  );
  expect(tokens(second)).toEqual(['two']);
  expect(await bridge.faults()).toEqual([]);
});

test('log messages come from the level on that the client asked for, and none without', async () => {
  const server = await startLegacyServer();
  const bridge = await startBridge(server.url);
  const log = (level?: string) =>
    bridge.post('tools/call', { name: 'log' }, { meta: level === undefined ? {} : { [META.logLevel]: level } });
  expect(levels(await log())).toEqual([]);
  expect(setTo(server)).toEqual([]);
  expect(levels(await log('warning'))).toEqual(['warning', 'error']);
  expect(levels(await log('debug'))).toEqual(['debug', 'warning', 'error']);
  expect(levels(await log('error'))).toEqual(['error']);
  expect(levels(await log())).toEqual([]);
  expect(setTo(server)).toEqual(['warning', 'debug']);
  expect(await bridge.faults()).toEqual([]);
});

test('a client that takes no events gets the response alone', async () => {
  const server = await startLegacyServer();
  const bridge = await startBridge(server.url);
  const reply = await bridge.post(
    'tools/call',
    { name: 'progress' },
    { meta: { progressToken: 1 }, accept: 'application/json' },
  );
  expect(reply.events).toEqual([]);
  expect(reply.message.result?.['content']).toHaveLength(1);
  expect(await bridge.faults()).toEqual([]);
});
