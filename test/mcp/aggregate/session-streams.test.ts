import { expect, test } from 'vitest';
import { atThisLoad } from '../../support/at-this-load.ts';
import { json } from '../sessions/scripted-server.ts';
import { startSdkServer } from '../sessions/sdk-server.ts';
import {
  call,
  connectV1,
  listenTo,
  messagesOf,
  startAggregateSpine,
  streamOf,
  textOf,
  until,
} from './aggregate-spine.ts';
import { startPartServer } from './part-server.ts';

const world = async (options: Parameters<typeof startAggregateSpine>[1] = {}) => {
  const server = await startPartServer(({ message }, response) => {
    if (message.method === 'tools/call') json(response, { jsonrpc: '2.0', id: message.id, result: { content: [] } });
  });
  const spine = await startAggregateSpine({ 'acme/one': server.url, 'acme/two': server.url }, options);
  const session = await spine.initialize();
  const ask = async (message: object) => messagesOf(await spine.send({ jsonrpc: '2.0', id: 1, ...message }, session));
  const say = (message: object) => {
    for (const stream of server.streams)
      stream.write(`id: 1\ndata: ${JSON.stringify({ jsonrpc: '2.0', ...message })}\n\n`);
  };
  return { server, spine, session, ask, say };
};

test('what the servers of open parts say comes with the URIs of the aggregate, also of parts that are opened later', async () => {
  const { server, spine, session, ask, say } = await world();
  expect((await ask({ method: 'resources/subscribe', params: { uri: 'acme--one+file:///a' } }))[0]).toMatchObject({
    result: {},
  });
  expect(server.heard('resources/subscribe')).toMatchObject([{ message: { params: { uri: 'file:///a' } } }]);
  const stream = streamOf(await listenTo(spine, session));
  await until(() => server.streams.size === 1);
  say({ method: 'notifications/resources/updated', params: { uri: 'file:///a' } });
  expect(await stream.next()).toEqual({
    jsonrpc: '2.0',
    method: 'notifications/resources/updated',
    params: { uri: 'acme--one+file:///a' },
  });

  // Its stream is there before the call is made: what a server asks before would be lost.
  server.streamDelayMs = 100;
  await ask(call(2, 'acme_two__ask'));
  expect(server.streams.size).toBe(2);
  say({ method: 'notifications/message', params: { level: 'info', data: 'hello' } });
  expect([await stream.next(), await stream.next()]).toMatchObject([
    { params: { data: 'hello' } },
    { params: { data: 'hello' } },
  ]);
  say({ id: 3, method: 'ping' });
  const pings = [await stream.next(), await stream.next()].map(({ id }) => id);
  expect(new Set(pings)).toEqual(new Set(['acme/one 3', 'acme/two 3']));
  await stream.cancel();
  await until(() => server.streams.size === 0);
  expect(await spine.faults()).toEqual([]);
});

test('a change in the lists of a service in scope is told once the list that is given out has it', async () => {
  const clock = { ahead: 0 };
  const server = await startPartServer(({ message }, response) => {
    if (message.method === 'tools/call') json(response, { jsonrpc: '2.0', id: message.id, result: { content: [] } });
  });
  const other = await startPartServer();
  const spine = await startAggregateSpine(
    { 'acme/one': server.url, 'acme/two': other.url },
    { now: () => Date.now() + clock.ahead },
  );
  const session = await spine.initialize({ url: `${spine.mcp}?services=acme/one` });
  await messagesOf(await spine.send(call(1, 'acme_one__ask'), session));
  const stream = streamOf(await listenTo(spine, session));
  await until(() => server.streams.size === 1);
  server.tools.push('more');
  other.tools.push('unseen');
  clock.ahead = 20_000;
  for (const open of server.streams)
    open.write('data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n\n');
  expect(await stream.next()).toEqual({ jsonrpc: '2.0', method: 'notifications/tools/list_changed' });
  const [listed] = await messagesOf(await spine.send({ jsonrpc: '2.0', id: 2, method: 'tools/list' }, session));
  expect((listed!['result'] as { tools: { name: string }[] }).tools.map(({ name }) => name)).toEqual([
    'acme_one__ask',
    'acme_one__more',
  ]);
  await stream.cancel();
});

test('a server that asks beside its requests is answered by the client', async () => {
  const server = await startSdkServer();
  const spine = await startAggregateSpine({ 'acme/one': server.url, 'acme/two': server.url });
  const { CreateMessageRequestSchema } = await import('@modelcontextprotocol/sdk/types.js');
  const client = await connectV1(spine.mcp, spine.key, (made) =>
    made.setRequestHandler(CreateMessageRequestSchema, () => ({
      model: 'm',
      role: 'assistant',
      content: { type: 'text', text: 'well said' },
    })),
  );
  for (const name of ['one', 'two']) await client.callTool({ name: `acme_${name}__echo`, arguments: { text: '' } });
  // What is asked before a client listens is lost, as it is without a gateway.
  await until(() => server.requests.filter((line) => line.startsWith('GET')).length === 2);
  const said = await Promise.all(
    ['one', 'two'].map((name) => client.callTool({ name: `acme_${name}__sample`, arguments: {} })),
  );
  for (const result of said) expect(textOf(result)).toContain('well said');
  expect(await spine.faults()).toEqual([]);
});

test('a session has one stream: a newer one ends the older', async () => {
  const { server, spine, session, ask } = await world();
  await ask(call(1, 'acme_one__ask'));
  const older = streamOf(await listenTo(spine, session));
  await until(() => server.streams.size === 1);
  const newer = streamOf(await listenTo(spine, session));
  expect(await older.rest()).toEqual([]);
  await newer.cancel();
});

test('a client that comes back needs no second place for its stream', async () => {
  const { spine, session } = await world({ toml: 'listens_max = 1\n' });
  const older = streamOf(await listenTo(spine, session));
  const newer = await listenTo(spine, session);
  expect([newer.status, newer.headers.get('content-type')]).toEqual([200, 'text/event-stream']);
  expect(await older.rest()).toEqual([]);
  // The place counts once.
  expect((await listenTo(spine, await spine.initialize())).status).toBe(429);
  const newest = streamOf(await listenTo(spine, session));
  expect(await streamOf(newer).rest()).toEqual([]);
  await newest.cancel();
});

test('a stream that cannot be resumed here does not end the one on which the client listens', async () => {
  const { server, spine, session, ask, say } = await world();
  await ask(call(1, 'acme_one__ask'));
  const listening = streamOf(await listenTo(spine, session));
  await until(() => server.streams.size === 1);
  const resumed = await listenTo(spine, session, { 'last-event-id': 'AbCdEfGh.7' });
  expect([resumed.status, await resumed.text()]).toEqual([405, expect.stringContaining('not known here')]);
  say({ method: 'notifications/message', params: { level: 'info', data: 'still here' } });
  expect(await listening.next()).toMatchObject({ params: { data: 'still here' } });
  await listening.cancel();
});

test('a stream ends with its session and with the gateway, is kept alive, and an account has so many', async () => {
  const { server, spine, session, ask } = await world({ toml: 'listens_max = 2\n', keepAliveMs: atThisLoad(300) });
  await ask(call(1, 'acme_one__ask'));
  const reply = await listenTo(spine, session);
  expect([reply.status, reply.headers.get('content-type')]).toEqual([200, 'text/event-stream']);
  const second = await spine.initialize();
  const other = await listenTo(spine, second);
  const refused = await listenTo(spine, await spine.initialize());
  expect([refused.status, await refused.text()]).toEqual([429, expect.stringContaining('2 streams')]);
  await until(() => server.streams.size === 1);
  await fetch(spine.mcp, {
    method: 'DELETE',
    headers: { authorization: `Bearer ${spine.key}`, 'mcp-session-id': session },
  });
  expect(await reply.text()).toMatch(/^: listening\n\n/);
  const kept = other.clone().body!.getReader();
  let text = '';
  while (!text.includes(': keep-alive')) text += Buffer.from((await kept.read()).value ?? []).toString();
  await until(() => server.streams.size === 0);
  expect((await listenTo(spine, session)).status).toBe(404);
  await spine.stop();
  expect(await other.text()).toMatch(/^: listening\n\n/);
});
