import { expect, test } from 'vitest';
import { startSdkServer } from '../sessions/sdk-server.ts';
import { json, startScripted } from '../sessions/scripted-server.ts';
import { open, post, PRICE, startWorld } from '../sessions/session-world.ts';

const call = (id: number, name: string, more: object = {}) => ({
  jsonrpc: '2.0',
  id,
  method: 'tools/call',
  params: { name, arguments: {}, ...more },
});

test('a call that is told as a notification reaches no server: it would act, and nobody pay', async () => {
  const server = await startScripted();
  const world = await startWorld({ url: server.url });
  const gateway = await world.gateway();
  const id = await open(gateway.url, 'alice');
  for (const method of ['tools/call', 'resources/read', 'notifications/odd'])
    expect(
      (await post(gateway.url, 'alice', id, { jsonrpc: '2.0', method, params: { name: 't', arguments: {} } })).status,
    ).toBe(202);
  expect(
    (
      await post(
        gateway.url,
        'alice',
        id,
        `[${JSON.stringify({ jsonrpc: '2.0', method: 'tools/call', params: { name: 't' } })}]`,
      )
    ).status,
  ).toBe(202);
  await post(gateway.url, 'alice', id, { jsonrpc: '2.0', method: 'notifications/roots/list_changed' });
  const told = server.asked.filter(({ session }) => session === 'upstream-2').map(({ message }) => message.method);
  expect(told).toEqual(['notifications/roots/list_changed']);
  expect(await world.faults()).toEqual([]);
});

test('a tool is called as if params.task was not there, since nobody here would see the end of a task', async () => {
  const server = await startScripted({
    answer: ({ message }, response) =>
      json(response, {
        jsonrpc: '2.0',
        id: message.id,
        result: message.params?.['task'] ? { task: { taskId: 't', status: 'working' } } : { content: [] },
      }),
  });
  const world = await startWorld({ url: server.url });
  const gateway = await world.gateway();
  const id = await open(gateway.url, 'alice');
  const reply = await post(gateway.url, 'alice', id, call(1, 't', { task: { ttl: 60_000 } }));
  expect(await reply.json()).toMatchObject({ id: 1, result: { content: [] } });
  expect(server.asked.findLast(({ message }) => message.method === 'tools/call')!.message.params).not.toHaveProperty(
    'task',
  );
  expect(await world.charged('alice')).toBeGreaterThan(0n);
  expect(await world.faults()).toEqual([]);
});

test('the answer of a call that was left is not had by another request with its id', async () => {
  const server = await startSdkServer();
  const world = await startWorld({ url: server.url });
  const gateway = await world.gateway();
  const id = await open(gateway.url, 'alice');
  await post(gateway.url, 'alice', id, { jsonrpc: '2.0', method: 'notifications/initialized' });
  const leave = new AbortController();
  const headers = {
    authorization: 'Bearer alice',
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    'mcp-session-id': id,
  };
  const left = fetch(gateway.url, {
    method: 'POST',
    signal: leave.signal,
    headers,
    body: JSON.stringify(call(5, 'wait')),
  }).catch(() => null);
  await server.waiting(1);
  leave.abort();
  await left;
  while (gateway.endings.length === 0) await new Promise((resolve) => setImmediate(resolve));
  expect(gateway.endings).toEqual(['wait: cancelled, 0']);
  // A tool that waits for its client's roots: there is time for the other answer to come by its stream.
  for (const again of [call(5, 'roots'), { jsonrpc: '2.0', id: 5, method: 'tools/list' }]) {
    const reply = await post(gateway.url, 'alice', id, again);
    expect(await reply.json()).toMatchObject({ id: 5, error: { code: -32_600 } });
  }
  server.finish();
  expect(await (await post(gateway.url, 'alice', id, call(6, 'wait'))).text()).toContain('waited');
  expect(await world.charged('alice')).toBe(PRICE);
  expect(await world.faults()).toEqual([]);
});
