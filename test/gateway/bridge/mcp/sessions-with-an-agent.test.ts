import { expect, test } from 'vitest';
import { connectV1, textOf } from '../../../mcp/aggregate/aggregate-spine.ts';
import { INITIALIZE, messagesOf, open, post } from '../../../mcp/sessions/session-world.ts';
import { startBridgeWorld, type WorldOptions } from './bridge-world.ts';
import { startLineServer, type Line } from './line-target.ts';

async function world(lines: readonly Line[] = [{ text: 'rain' }, { end: {} }], options: WorldOptions = {}) {
  const line = await startLineServer(() => lines);
  const started = await startBridgeWorld({
    agents: { weather: { url: line.url }, other: { url: line.url } },
    ...options,
  });
  return { ...started, line, url: `${started.origin}/mcp/a2a/weather` };
}

const CALL = {
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/call',
  params: { name: 'send_message', arguments: { message: 'hi' } },
};
const request = (method: string, params = {}) => ({ jsonrpc: '2.0', id: 2, method, params });

test('a session goes on at another gateway of the database, and is nobody else’s', async () => {
  const { url, gateway } = await world();
  const id = await open(url, 'alice');
  const [first] = await messagesOf(await post(url, 'alice', id, CALL));
  expect(textOf(first!['result'])).toBe('rain');
  const other = await gateway();
  const [second] = await messagesOf(await post(`${other.origin}/mcp/a2a/weather`, 'alice', id, CALL));
  expect(textOf(second!['result'])).toBe('rain');
  for (const [address, account, session] of [
    [url, 'bob', id],
    [url.replace('weather', 'other'), 'alice', id],
    [url, 'alice', 'x'.repeat(43)],
  ] as const)
    expect((await post(address, account, session, CALL)).status).toBe(404);
  const ended = await fetch(url, {
    method: 'DELETE',
    headers: { authorization: 'Bearer alice', 'mcp-session-id': id },
  });
  expect(ended.status).toBe(204);
  expect((await post(url, 'alice', id, CALL)).status).toBe(404);
});

test('the revision is the one that was asked for, where it is known', async () => {
  const { url } = await world();
  const revision = async (protocolVersion: string) => {
    const reply = await post(url, 'alice', null, { ...INITIALIZE, params: { ...INITIALIZE.params, protocolVersion } });
    return ((await reply.json()) as { result: { protocolVersion: string; capabilities: object } }).result;
  };
  expect(await revision('2025-03-26')).toMatchObject({ protocolVersion: '2025-03-26', capabilities: { tools: {} } });
  expect(await revision('1999-01-01')).toMatchObject({ protocolVersion: '2025-11-25' });
});

test('there are only tools, no stream, and a ping is answered', async () => {
  const { url } = await world();
  const id = await open(url, 'alice');
  expect(await messagesOf(await post(url, 'alice', id, request('ping')))).toEqual([
    { jsonrpc: '2.0', id: 2, result: {} },
  ]);
  for (const method of ['prompts/list', 'logging/setLevel', 'resources/subscribe', 'no/such'])
    expect(await messagesOf(await post(url, 'alice', id, request(method))), method).toMatchObject([
      { error: { code: -32601 } },
    ]);
  const listening = await fetch(url, {
    headers: { authorization: 'Bearer alice', accept: 'text/event-stream', 'mcp-session-id': id },
  });
  expect(listening.status).toBe(405);
  expect(await messagesOf(await post(url, 'alice', id, request('tools/call', { name: 'nothing' })))).toMatchObject([
    { error: { code: -32602 } },
  ]);
});

test('a request that is cancelled ends, and is free', async () => {
  const { url, line, charged, endings, inFlight, faults } = await world([
    { text: 'well' },
    { wait: new Promise(() => {}) },
  ]);
  const client = await connectV1(url, 'alice');
  const cancel = new AbortController();
  // The text is heard before the call is cancelled.
  const options = { signal: cancel.signal, onprogress: () => cancel.abort() };
  await expect(
    client.callTool({ name: 'send_message', arguments: { message: 'hi' } }, undefined, options),
  ).rejects.toThrow(/abort/i);
  await line.left;
  await expect.poll(inFlight).toBe(0);
  // By the cancellation, not by the silence that followed.
  expect(endings).toEqual(['agent weather: cancelled']);
  expect(await charged()).toBe(0n);
  expect(await faults()).toEqual([]);
});

test('two requests of one id do not run side by side', async () => {
  const begun = Promise.withResolvers<void>();
  const goOn = Promise.withResolvers<void>();
  const { url } = await world([
    {
      get wait() {
        begun.resolve();
        return goOn.promise;
      },
    },
    { text: 'rain' },
    { end: {} },
  ]);
  const id = await open(url, 'alice');
  const first = post(url, 'alice', id, CALL);
  await begun.promise;
  expect(await messagesOf(await post(url, 'alice', id, CALL))).toMatchObject([{ error: { code: -32600 } }]);
  goOn.resolve();
  const [answer] = await messagesOf(await first);
  expect(textOf(answer!['result'])).toBe('rain');
});

test('a batch is answered in one array, each call billed by itself', async () => {
  const { url, charged } = await world();
  const id = await open(url, 'alice', {
    ...INITIALIZE,
    params: { ...INITIALIZE.params, protocolVersion: '2025-03-26' },
  });
  const reply = await post(
    url,
    'alice',
    id,
    JSON.stringify([CALL, { ...CALL, id: 9 }, { jsonrpc: '2.0', method: 'notifications/initialized' }]),
  );
  expect(((await reply.json()) as { id: number }[]).map((one) => one.id)).toEqual([1, 9]);
  expect(await charged()).toBe(2_000n);
});

test('an account has only so many, and one too many is refused', async () => {
  const { url } = await world(undefined, { mcp: { sessionsMax: 2 } });
  await open(url, 'alice');
  await open(url, 'alice');
  const refused = await post(url, 'alice', null, INITIALIZE);
  expect(refused.status).toBe(429);
  expect(await refused.text()).toContain('This account has 2 sessions');
  await open(url, 'bob');
});

test('a session is swept when its time is over', async () => {
  const { url, mcp } = await world(undefined, { mcp: { sessionIdleMs: 1 } });
  const id = await open(url, 'alice');
  expect(mcp.counts().sessions).toBe(1);
  await expect.poll(async () => (await post(url, 'alice', id, request('ping'))).status, { timeout: 60_000 }).toBe(404);
  await expect.poll(() => mcp.counts().sessions, { timeout: 60_000 }).toBe(0);
});
