import { expect, test } from 'vitest';
import { json, startScripted } from './scripted-server.ts';
import { open, post, startWorld } from './session-world.ts';

const SESSIONS = process.env['TOLLGATE_DEEP'] === '1' ? 10_000 : 120;
const IDLE_MS = 1_800_000;
const TOUCH_MS = 60_000;
/** What the store learns late is added to the idle time. */
const GONE_MS = IDLE_MS + 2 * TOUCH_MS;
const PING = { jsonrpc: '2.0', id: 1, method: 'tools/list' };

async function world(mcp: Parameters<typeof startWorld>[0]['mcp'] = {}) {
  const server = await startScripted({
    answer: ({ message }, response) =>
      message.method === 'tools/list'
        ? json(response, { jsonrpc: '2.0', id: message.id, result: { tools: [] } })
        : undefined,
  });
  const started = await startWorld({ url: server.url, standing: true, mcp: { sessionsMax: 100_000, ...mcp } });
  return { server, world: started, gateway: await started.gateway() };
}

test('sessions that are opened and abandoned leave nothing: not in memory, not in the database, not at their server', async () => {
  const { server, world: started, gateway } = await world();
  let begun = 0;
  const opener = async () => {
    while (begun++ < SESSIONS) await open(gateway.url, `user${begun % 7}`);
  };
  await Promise.all(Array.from({ length: 16 }, opener));
  expect([gateway.sessions.count(), await started.rows(), server.open.size]).toEqual([SESSIONS, SESSIONS, SESSIONS]);
  started.clock.ahead += GONE_MS - 60_000;
  expect(await gateway.sessions.sweep()).toBe(0);
  // What is in memory alone is forgotten earlier, as the database can give it back.
  expect([gateway.sessions.count(), await started.rows()]).toEqual([0, SESSIONS]);
  started.clock.ahead += 120_000;
  let swept = 0;
  for (let of = -1; of !== 0; swept += of) of = await gateway.sessions.sweep();
  expect(swept).toBe(SESSIONS);
  expect([
    gateway.sessions.count(),
    await started.rows(),
    server.open.size,
    gateway.listens.count,
    gateway.replays.bytes,
  ]).toEqual([0, 0, 0, 0, 0]);
  expect(server.asked.filter(({ http }) => http === 'DELETE').length).toBe(SESSIONS + 1);
  expect(gateway.inFlight()).toBe(0);
  expect(gateway.errors).toEqual([]);
  expect(await started.faults()).toEqual([]);
});

test('a session that is used goes on, however old it is', async () => {
  const { world: started, gateway } = await world();
  const id = await open(gateway.url, 'alice');
  for (let n = 0; n < 6; n++) {
    started.clock.ahead += IDLE_MS - 1_000;
    expect(await gateway.sessions.sweep()).toBe(0);
    expect((await post(gateway.url, 'alice', id, PING)).status).toBe(200);
  }
  started.clock.ahead += GONE_MS + 60_000;
  expect((await post(gateway.url, 'alice', id, PING)).status).toBe(404);
  expect(await gateway.sessions.sweep()).toBe(1);
});

test('a stream that is listened on keeps its session', async () => {
  const server = await startScripted({
    answer({ http }, response) {
      if (http === 'GET') response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
    },
  });
  const started = await startWorld({ url: server.url });
  const gateway = await started.gateway();
  const id = await open(gateway.url, 'alice');
  const leave = new AbortController();
  const headers = { authorization: 'Bearer alice', 'mcp-session-id': id, accept: 'text/event-stream' };
  // A Response that nobody holds is collected, and its stream with it.
  const heard = await fetch(gateway.url, { headers, signal: leave.signal });
  expect(heard.status).toBe(200);
  for (let n = 0; n < 4; n++) {
    started.clock.ahead += IDLE_MS;
    expect(await gateway.sessions.sweep()).toBe(0);
  }
  expect([gateway.sessions.count(), gateway.listens.count]).toEqual([1, 1]);
  expect(heard.bodyUsed).toBe(false);
  leave.abort();
  while (gateway.listens.count > 0) await new Promise((resolve) => setImmediate(resolve));
  started.clock.ahead += GONE_MS;
  expect(await gateway.sessions.sweep()).toBe(1);
  expect([gateway.sessions.count(), await started.rows(), server.open.size]).toEqual([0, 0, 0]);
  expect(gateway.errors).toEqual([]);
});

test('one gateway does not end what another one uses', async () => {
  const { world: started, gateway } = await world();
  const other = await started.gateway();
  const id = await open(gateway.url, 'alice');
  started.clock.ahead += IDLE_MS - 1_000;
  expect((await post(other.url, 'alice', id, PING)).status).toBe(200);
  started.clock.ahead += IDLE_MS - 1_000;
  expect(await gateway.sessions.sweep()).toBe(0);
  expect((await post(gateway.url, 'alice', id, PING)).status).toBe(200);
});

test('a server that is asked to end a session and says nothing is not taken for broken', async () => {
  const { server, world: started, gateway } = await world();
  await open(gateway.url, 'alice');
  const other = await open(gateway.url, 'bob');
  server.silent = true;
  started.clock.ahead += GONE_MS;
  expect(await gateway.sessions.sweep(1)).toBe(1);
  server.silent = false;
  expect(await gateway.sessions.sweep()).toBe(1);
  expect(server.open.size).toBe(1);
  expect((await post(gateway.url, 'bob', other, PING)).status).toBe(404);
  const again = await open(gateway.url, 'bob');
  expect((await post(gateway.url, 'bob', again, PING)).status).toBe(200);
  expect(gateway.failures()).toBe(0);
});
