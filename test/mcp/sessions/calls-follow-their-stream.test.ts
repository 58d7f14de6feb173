import { expect, test } from 'vitest';
import { events, json, startScripted } from './scripted-server.ts';
import { INITIALIZE, open, startWorld } from './session-world.ts';

/** A server with one tool, which answers the head of a stream when the test says so. */
async function world(initialize: object = INITIALIZE) {
  const order: string[] = [];
  const stream = Promise.withResolvers<void>();
  const arrived = Promise.withResolvers<void>();
  const server = await startScripted({
    async answer({ http, message }, response) {
      if (http === 'GET') {
        arrived.resolve();
        await stream.promise;
        order.push('stream');
        return events(response).flushHeaders();
      }
      if (message.method !== 'tools/call') return undefined;
      order.push('call');
      return json(response, { jsonrpc: '2.0', id: message.id, result: { content: [] } });
    },
  });
  const gateway = await (await startWorld({ url: server.url })).gateway();
  const headers = { authorization: 'Bearer alice', 'mcp-session-id': await open(gateway.url, 'alice', initialize) };
  const left = new AbortController();
  return {
    order,
    stream,
    arrived,
    left,
    listen: () => fetch(gateway.url, { headers: { ...headers, accept: 'text/event-stream' }, signal: left.signal }),
    call: () =>
      fetch(gateway.url, {
        method: 'POST',
        headers: {
          ...headers,
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
        },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'x', arguments: {} } }),
      }),
  };
}

test('a call does not overtake the stream that its client opened before it', async () => {
  const { order, stream, arrived, left, listen, call } = await world();
  const listening = listen();
  await arrived.promise;
  const called = call();
  setTimeout(stream.resolve, 50);
  expect((await called).status).toBe(200);
  expect(order).toEqual(['stream', 'call']);
  expect((await listening).status).toBe(200);
  left.abort();
});

test('a call goes on where the server does not answer the stream', async () => {
  const { order, stream, arrived, left, listen, call } = await world();
  const listening = listen().catch(() => null);
  await arrived.promise;
  expect((await call()).status).toBe(200);
  expect(order).toEqual(['call']);
  left.abort();
  stream.resolve();
  await listening;
});

test('a call of a client that takes no questions does not wait', async () => {
  const { order, stream, arrived, left, listen, call } = await world({
    ...INITIALIZE,
    params: { ...INITIALIZE.params, capabilities: {} },
  });
  const listening = listen();
  await arrived.promise;
  expect((await call()).status).toBe(200);
  stream.resolve();
  await listening;
  expect(order).toEqual(['call', 'stream']);
  left.abort();
});
