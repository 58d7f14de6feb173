import { expect, test } from 'vitest';
import { startBridge } from './bridge.ts';
import { EVENTS, startRawServer } from './raw-legacy-server.ts';

test('a stream that ends without the response is asked for again behind its last event', async () => {
  const asked: unknown[] = [];
  let id: unknown;
  const server = await startRawServer(
    ({ message }, response) => {
      ({ id } = message);
      response.writeHead(200, EVENTS).end('id: a\nretry: 1\ndata: \n\n');
      return null;
    },
    {
      get({ headers }, response) {
        asked.push(headers['last-event-id']);
        const done = asked.length === 3;
        const event = done
          ? `id: d\ndata: ${JSON.stringify({ jsonrpc: '2.0', id, result: { content: [] } })}\n\n`
          : `id: b${asked.length}\ndata: \n\n`;
        response.writeHead(200, EVENTS).end(event);
      },
    },
  );
  const bridge = await startBridge(server.url);
  const { message } = await bridge.post('tools/call', { name: 't' });
  expect(message.result).toEqual({ content: [], resultType: 'complete' });
  expect(asked).toEqual(['a', 'b1', 'b2']);
  expect(bridge.endings).toEqual(['t: complete, 1000']);
  expect(await bridge.faults()).toEqual([]);
});

test('a stream without events that can be asked for again is broken, and costs nothing', async () => {
  const server = await startRawServer((_request, response) => {
    response
      .writeHead(200, EVENTS)
      .end('data: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}\n\n');
    return null;
  });
  const bridge = await startBridge(server.url);
  expect((await bridge.post('tools/call', { name: 't' })).status).toBe(502);
  expect(bridge.endings).toEqual(['t: released, 0']);
  expect(await bridge.faults()).toEqual([]);
});
