import type { ServerResponse } from 'node:http';
import { expect, test } from 'vitest';
import { ACCOUNT, OTHER_ACCOUNT, startBridge, type Message } from './bridge.ts';
import { EVENTS, startRawServer } from './raw-legacy-server.ts';
import { startLegacyServer, textOf } from './legacy-server.ts';

const JSON_HEAD = { 'content-type': 'application/json' };
const capabilities = { elicitation: { form: {} }, sampling: {}, roots: {} };
const accept = (content: object) => ({ action: 'accept', content });

/** The one key that is asked for, with the question. */
function askedOf({ result }: Message): [string, { method: string; params: Record<string, unknown> }] {
  expect(result?.['resultType']).toBe('input_required');
  return Object.entries(result!['inputRequests'] as object)[0] as [
    string,
    { method: string; params: Record<string, unknown> },
  ];
}

test('a call that asks twice is held twice, goes on where it was, and is charged once', async () => {
  const server = await startLegacyServer();
  const bridge = await startBridge(server.url);
  const first = await bridge.post('tools/call', { name: 'interview' }, { capabilities });
  const [firstKey, question] = askedOf(first.message);
  expect(question).toMatchObject({
    method: 'elicitation/create',
    params: { message: 'Your name?', requestedSchema: { required: ['name'] } },
  });
  expect(bridge.held.size).toBe(1);
  expect(await bridge.heldLocks()).toBe(1);

  const requestState = first.message.result!['requestState'];
  const second = await bridge.post(
    'tools/call',
    { name: 'interview', inputResponses: { [firstKey]: accept({ name: 'Ann' }) }, requestState },
    { capabilities },
  );
  const [secondKey] = askedOf(second.message);
  expect(second.message.result!['requestState']).not.toBe(requestState);
  expect(await bridge.heldLocks()).toBe(1);

  const round = {
    inputResponses: { [secondKey]: accept({ color: 'blue' }) },
    requestState: second.message.result!['requestState'],
  };
  const third = await bridge.post('tools/call', { name: 'interview', ...round }, { capabilities, id: 'the-last' });
  expect(third.message.id).toBe('the-last');
  expect(third.message.result).toEqual({ content: [{ type: 'text', text: 'Ann likes blue' }], resultType: 'complete' });
  expect(server.seen.filter(({ message }) => message.method === 'tools/call')).toHaveLength(1);
  expect(bridge.endings).toEqual([
    'interview: input_required, 0',
    'interview: input_required, 0',
    'interview: complete, 1000',
  ]);
  expect(bridge.held.size).toBe(0);
  expect(await bridge.heldLocks()).toBe(0);
  expect(await bridge.faults()).toEqual([]);
});

test('what a server asks together is asked together', async () => {
  const server = await startLegacyServer();
  const bridge = await startBridge(server.url);
  const asked = await bridge.post('tools/call', { name: 'everything' }, { capabilities });
  const requests = asked.message.result!['inputRequests'] as Record<string, { method: string }>;
  const answers: Readonly<Record<string, object>> = {
    'elicitation/create': accept({ name: 'Ann' }),
    'sampling/createMessage': { role: 'assistant', content: { type: 'text', text: 'Hello' }, model: 'm' },
    'roots/list': { roots: [{ uri: 'file:///a' }] },
  };
  expect(
    Object.values(requests)
      .map(({ method }) => method)
      .toSorted(),
  ).toEqual(Object.keys(answers).toSorted());
  const inputResponses = Object.fromEntries(
    Object.entries(requests).map(([key, { method }]) => [key, answers[method]]),
  );
  const done = await bridge.post(
    'tools/call',
    { name: 'everything', inputResponses, requestState: asked.message.result!['requestState'] },
    { capabilities },
  );
  expect(JSON.parse(textOf(done.message.result))).toEqual([
    { name: 'Ann' },
    { type: 'text', text: 'Hello' },
    [{ uri: 'file:///a' }],
  ]);
  expect(await bridge.faults()).toEqual([]);
});

function standStill(ms: number): void {
  const until = performance.now() + ms;
  while (performance.now() < until);
}

test.each([
  { name: 'soon after', stallMs: 0 },
  { name: 'soon after, while the gateway stands still,', stallMs: 200 },
])('what a server asks $name is asked together too', async ({ stallMs }) => {
  const server = await startRawServer((_request, response) => {
    const ask = (id: number) => response.write(`data: {"jsonrpc":"2.0","id":${id},"method":"roots/list"}\n\n`);
    response.writeHead(200, EVENTS);
    ask(1);
    setTimeout(ask, 30, 2);
    // Outside of timers, so that they are due together when it goes on.
    setTimeout(() => setImmediate(standStill, stallMs), 20);
    return null;
  });
  const bridge = await startBridge(server.url);
  const { message } = await bridge.post('tools/call', { name: 't' }, { capabilities });
  expect(message.result!['inputRequests']).toEqual({
    'input-1': { method: 'roots/list', params: {} },
    'input-2': { method: 'roots/list', params: {} },
  });
  expect(await bridge.faults()).toEqual([]);
});

test('what is not answered is asked again', async () => {
  const server = await startLegacyServer();
  const bridge = await startBridge(server.url);
  const first = await bridge.post('tools/call', { name: 'ask' }, { capabilities });
  const [key] = askedOf(first.message);
  const wrong = {
    inputResponses: { other: accept({}), [key]: 12 },
    requestState: first.message.result!['requestState'],
  };
  const second = await bridge.post('tools/call', { name: 'ask', ...wrong }, { capabilities });
  const [again] = askedOf(second.message);
  expect(again).toBe(key);
  const right = {
    inputResponses: { [key]: { action: 'decline' } },
    requestState: second.message.result!['requestState'],
  };
  const third = await bridge.post('tools/call', { name: 'ask', ...right }, { capabilities });
  expect(textOf(third.message.result)).toBe('decline undefined');
  expect(await bridge.faults()).toEqual([]);
});

test('a server that asks beside the request that runs is heard', async () => {
  const server = await startLegacyServer();
  const bridge = await startBridge(server.url);
  const first = await bridge.post('tools/call', { name: 'ask-beside' }, { capabilities });
  const [key] = askedOf(first.message);
  const round = {
    inputResponses: { [key]: accept({ name: 'Ann' }) },
    requestState: first.message.result!['requestState'],
  };
  const done = await bridge.post('tools/call', { name: 'ask-beside', ...round }, { capabilities });
  expect(textOf(done.message.result)).toBe('accept Ann');
  expect(await bridge.faults()).toEqual([]);
});

test('a server that is slow to open the stream on which it asks is heard', async () => {
  const server = await startLegacyServer({ streamMs: 300 });
  const bridge = await startBridge(server.url);
  const { message } = await bridge.post('tools/call', { name: 'ask-beside' }, { capabilities });
  expect(askedOf(message)[1]).toMatchObject({ method: 'elicitation/create' });
  expect(server.seen.at(-1)?.message.method).toBe('tools/call');
  expect(await bridge.faults()).toEqual([]);
});

test('a server that sends the head of that stream with its first event is waited for once', async () => {
  const heads: ServerResponse[] = [];
  const server = await startRawServer(
    ({ message }, response) => {
      response
        .writeHead(200, JSON_HEAD)
        .end(JSON.stringify({ jsonrpc: '2.0', id: message.id, result: { content: [] } }));
      return null;
    },
    { get: (_request, response) => void heads.push(response) },
  );
  const bridge = await startBridge(server.url);
  // Each account has a session of its own, and so a stream.
  const took = async (account: string) => {
    const begun = performance.now();
    expect((await bridge.post('tools/call', { name: 't' }, { capabilities, account })).message.result).toBeDefined();
    return performance.now() - begun;
  };
  const first = await took(ACCOUNT);
  expect(first).toBeGreaterThan(900);
  expect(await took(OTHER_ACCOUNT)).toBeLessThan(first);
  expect(heads).toHaveLength(2);
});

test('a server that asks beside the request, before it has begun to answer that, is heard', async () => {
  // The request may be here before the stream.
  const stream = Promise.withResolvers<ServerResponse>();
  let waiting: ((said: unknown) => void) | null = null;
  const server = await startRawServer(
    ({ message }, response) => {
      if (message.method === undefined) {
        response.writeHead(202).end();
        waiting?.(message.result);
        return null;
      }
      waiting = (said) =>
        response
          .writeHead(200, JSON_HEAD)
          .end(JSON.stringify({ jsonrpc: '2.0', id: message.id, result: { content: [], said } }));
      void stream.promise.then((opened) =>
        opened.writeHead(200, EVENTS).write('data: {"jsonrpc":"2.0","id":0,"method":"roots/list"}\n\n'),
      );
      return null;
    },
    { get: (_request, response) => stream.resolve(response) },
  );
  const bridge = await startBridge(server.url);
  const first = await bridge.post('tools/call', { name: 't' }, { capabilities });
  const [key, question] = askedOf(first.message);
  expect(question).toEqual({ method: 'roots/list', params: {} });
  const round = { inputResponses: { [key]: { roots: [] } }, requestState: first.message.result!['requestState'] };
  const second = await bridge.post('tools/call', { name: 't', ...round }, { capabilities });
  expect(second.message.result?.['said']).toEqual({ roots: [] });
  expect(await bridge.faults()).toEqual([]);
});
