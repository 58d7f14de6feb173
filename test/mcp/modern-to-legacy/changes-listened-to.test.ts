import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { expect, onTestFinished, test, vi } from 'vitest';
import { META, MODERN } from '../../../src/mcp/wire/revisions.ts';
import { startBridge, toReply, type Bridge, type Message } from './bridge.ts';
import { startLegacyServer } from './legacy-server.ts';
import { EVENTS, startRawServer } from './raw-legacy-server.ts';

/** Opens a subscription; `next` gives its events one by one, null at the end. */
async function listen(bridge: Bridge, notifications: object) {
  const client = new AbortController();
  onTestFinished(() => client.abort());
  const params = { notifications, _meta: { [META.version]: MODERN, [META.capabilities]: {} } };
  const headers = { 'mcp-protocol-version': MODERN, 'mcp-method': 'subscriptions/listen' };
  const response = await bridge.raw(
    JSON.stringify({ jsonrpc: '2.0', id: 'sub', method: 'subscriptions/listen', params }),
    headers,
    client.signal,
  );
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  return {
    leave: () => client.abort(),
    async next(): Promise<Message | null> {
      for (;;) {
        const end = text.indexOf('\n\n');
        if (end !== -1) {
          const data = /^data: (.*)$/m.exec(text.slice(0, end))![1]!;
          text = text.slice(end + 2);
          return JSON.parse(data) as Message;
        }
        const { done, value } = await reader.read();
        if (done) return null;
        text += value;
      }
    },
  };
}

const subscription = { [META.subscriptionId]: 'sub' };
const WATCHED = { uri: 'test://watched' };

test('a subscription is acknowledged, told of what it asked for, and ended at the server', async () => {
  const server = await startLegacyServer();
  const bridge = await startBridge(server.url);
  const wanted = {
    toolsListChanged: true,
    promptsListChanged: false,
    resourcesListChanged: true,
    resourceSubscriptions: [WATCHED.uri],
  };
  const changes = await listen(bridge, wanted);
  expect(await changes.next()).toEqual({
    jsonrpc: '2.0',
    method: 'notifications/subscriptions/acknowledged',
    params: {
      notifications: { toolsListChanged: true, resourcesListChanged: true, resourceSubscriptions: [WATCHED.uri] },
      _meta: subscription,
    },
  });
  await bridge.post('tools/call', { name: 'touch' });
  const heard = [await changes.next(), await changes.next()];
  expect(heard.toSorted((a, b) => a!.method!.localeCompare(b!.method!))).toEqual([
    { jsonrpc: '2.0', method: 'notifications/resources/list_changed', params: { _meta: subscription } },
    { jsonrpc: '2.0', method: 'notifications/resources/updated', params: { ...WATCHED, _meta: subscription } },
  ]);
  const unsubscribed = once(server.events, 'unsubscribed');
  changes.leave();
  expect(await unsubscribed).toEqual([WATCHED.uri]);
  expect(await bridge.faults()).toEqual([]);
});

test('a resource stays subscribed to while one of two wants it', async () => {
  const server = await startLegacyServer();
  const bridge = await startBridge(server.url);
  const [one, two] = [
    await listen(bridge, { resourceSubscriptions: [WATCHED.uri] }),
    await listen(bridge, { resourceSubscriptions: [WATCHED.uri] }),
  ];
  await one.next();
  await two.next();
  one.leave();
  await bridge.post('tools/call', { name: 'touch' });
  expect((await two.next())?.params?.['uri']).toBe(WATCHED.uri);
  expect(server.seen.filter(({ message }) => message.method === 'resources/subscribe')).toHaveLength(1);
  expect([...server.sessions.values()].filter(({ subscribed }) => subscribed.size > 0)).toHaveLength(1);
  const unsubscribed = once(server.events, 'unsubscribed');
  two.leave();
  await unsubscribed;
});

test('a server without a stream of its own acknowledges nothing, and the subscription ends', async () => {
  // A stream that says nothing for a while is taken for open: here no time passes until the server has refused it.
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  const server = await startRawServer(() => '{}', {
    initialized:
      '{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"raw","version":"1"}}',
  });
  const bridge = await startBridge(server.url);
  const { events, message } = await bridge.post(
    'subscriptions/listen',
    { notifications: { toolsListChanged: true } },
    { id: 'sub' },
  );
  expect(events.map(({ params }) => params)).toEqual([{ notifications: {}, _meta: subscription }]);
  expect(message).toEqual({ jsonrpc: '2.0', id: 'sub', result: { resultType: 'complete', _meta: subscription } });
});

test('an update of a sub-resource is one of the resource', async () => {
  const updated = [
    'file:///directory',
    'file:///dir/a.txt',
    'file:///dir?x',
    'file:///all/b',
    'file:///di',
    'file:///dir',
  ];
  const server = await startRawServer(() => '{"jsonrpc":"2.0","id":1,"result":{}}', {
    initialized:
      '{"protocolVersion":"2025-06-18","capabilities":{"resources":{"subscribe":true}},"serverInfo":{"name":"raw","version":"1"}}',
    get(_request, response) {
      response.writeHead(200, EVENTS).flushHeaders();
      stream.resolve(response);
    },
  });
  const stream = Promise.withResolvers<ServerResponse>();
  const bridge = await startBridge(server.url);
  const changes = await listen(bridge, { resourceSubscriptions: ['file:///dir', 'file:///all/'] });
  await changes.next();
  for (const uri of updated) {
    const message = { jsonrpc: '2.0', method: 'notifications/resources/updated', params: { uri } };
    (await stream.promise).write(`data: ${JSON.stringify(message)}\n\n`);
  }
  const heard: unknown[] = [];
  for (let index = 0; index < 4; index++) heard.push((await changes.next())?.params?.['uri']);
  expect(heard).toEqual(['file:///dir/a.txt', 'file:///dir?x', 'file:///all/b', 'file:///dir']);
});

test('a stream that the server ends is opened again behind its last event', async () => {
  const changed = JSON.stringify({ jsonrpc: '2.0', method: 'notifications/tools/list_changed' });
  const gets: (string | undefined)[] = [];
  const server = await startRawServer(() => '{}', {
    initialized:
      '{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"raw","version":"1"}}',
    get({ headers }, response) {
      gets.push(headers['last-event-id'] as string | undefined);
      const id = `e${gets.length}`;
      if (gets.length > 3) return void response.writeHead(405).end();
      response.writeHead(200, EVENTS).end(`id: ${id}\nretry: 1\ndata: \n\nid: ${id}\ndata: ${changed}\n\n`);
    },
  });
  const bridge = await startBridge(server.url);
  const reply = await toReply(
    await bridge.raw(
      JSON.stringify({
        jsonrpc: '2.0',
        id: 'sub',
        method: 'subscriptions/listen',
        params: {
          notifications: { toolsListChanged: true },
          _meta: { [META.version]: MODERN, [META.capabilities]: {} },
        },
      }),
      { 'mcp-protocol-version': MODERN, 'mcp-method': 'subscriptions/listen' },
    ),
  );
  expect(gets).toEqual([undefined, 'e1', 'e2', 'e3']);
  expect(reply.events.slice(1).map(({ method }) => method)).toEqual(
    Array.from({ length: 3 }, () => 'notifications/tools/list_changed'),
  );
});
