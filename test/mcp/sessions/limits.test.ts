import { expect, test } from 'vitest';
import { createSessionStore } from '#mcp';
import { createKeptSessions, type KeptSession } from '../../../src/mcp/sessions/kept-sessions.ts';
import { openTestDatabase } from '../../gateway/test-database.ts';
import { events, json, startScripted } from './scripted-server.ts';
import { INITIALIZE, open, post, startWorld } from './session-world.ts';

const LIST = { jsonrpc: '2.0', id: 1, method: 'tools/list' };

async function world(mcp: NonNullable<Parameters<typeof startWorld>[0]['mcp']>, listensMax = 32) {
  const server = await startScripted({
    answer({ message, http }, response) {
      if (message.method === 'tools/list')
        return json(response, { jsonrpc: '2.0', id: message.id, result: { tools: [] } });
      return http === 'GET' ? events(response).flushHeaders() : undefined;
    },
  });
  const started = await startWorld({ url: server.url, mcp, listensMax });
  const gateway = await started.gateway();
  const list = async (id: string, account = 'alice') => (await post(gateway.url, account, id, LIST)).status;
  return { server, world: started, gateway, list };
}

test('one session too many ends the one that was not used for longest, at its server too', async () => {
  const { server, world: started, gateway, list } = await world({ sessionsMax: 3 });
  const [first, second, third] = [
    await open(gateway.url, 'alice'),
    await open(gateway.url, 'alice'),
    await open(gateway.url, 'alice'),
  ];
  const bobs = await open(gateway.url, 'bob');
  started.clock.ahead += 121_000;
  expect(await list(first)).toBe(200);
  const fourth = await open(gateway.url, 'alice');
  expect([
    await list(first),
    await list(second),
    await list(third),
    await list(fourth),
    await list(bobs, 'bob'),
  ]).toEqual([200, 404, 200, 200, 200]);
  while (server.open.size > 4) await new Promise((resolve) => setImmediate(resolve));
  expect(await started.rows()).toBe(4);
});

test('sessions that are in use make no room', async () => {
  const { server, gateway, list } = await world({ sessionsMax: 2 });
  const ids = [await open(gateway.url, 'alice'), await open(gateway.url, 'alice')];
  const refused = await post(gateway.url, 'alice', null, INITIALIZE);
  expect([refused.status, refused.headers.get('mcp-session-id'), await refused.json()]).toMatchObject([
    429,
    null,
    { id: 0, error: { code: -32_000 } },
  ]);
  expect(server.open.size).toBe(2);
  for (const id of ids) expect(await list(id)).toBe(200);
  await open(gateway.url, 'bob');
});

test('many that open at once do not get past the bound', async () => {
  const { world: started, gateway } = await world({ sessionsMax: 5 });
  const replies = await Promise.all(Array.from({ length: 20 }, () => post(gateway.url, 'alice', null, INITIALIZE)));
  const opened = replies.filter(({ status }) => status === 200).length;
  expect(opened).toBeLessThanOrEqual(5);
  expect(await started.rows()).toBe(opened);
});

test('memory holds so many and no more, and the others are taken up when they are used', async () => {
  const { world: started, gateway, list } = await world({ sessionsInMemoryMax: 2 });
  const ids = [];
  for (let n = 0; n < 5; n++) ids.push(await open(gateway.url, 'alice'));
  expect(gateway.sessions.count()).toBe(2);
  for (const id of ids) expect(await list(id)).toBe(200);
  expect(gateway.sessions.count()).toBe(2);
  expect(await started.rows()).toBe(5);
});

test('a session that memory forgot while it was found is used, kept alive and ended as any other', async () => {
  const clock = { now: 0 };
  const now = () => clock.now;
  const sessionIdleMs = 60_000;
  const kept = createKeptSessions<KeptSession>({
    kind: 'test',
    store: createSessionStore(await openTestDatabase('sqlite'), { now }),
    config: { sessionsMax: 10, sessionsInMemoryMax: 1, sessionIdleMs },
    now,
    onError: (error) => expect.unreachable(String(error)),
    toState: () => '',
    fromState: ({ id, account }) => ({ id, account }),
  });
  const opened = await Promise.all(['a', 'b', 'c'].map((account) => kept.add({ account })));
  // All are read from the store at once, and memory has room for one.
  kept.close();
  const uses = await Promise.all(
    opened.map((session) => kept.enter(session!.id, { account: session!.account, within: null })),
  );
  expect(kept.count()).toBe(3);
  for (let time = 0; time < 5 * sessionIdleMs; time += sessionIdleMs / 4) {
    clock.now = time;
    expect(await kept.sweep()).toBe(0);
  }
  for (const session of opened) kept.drop(session!.id);
  expect(uses.map((use) => use!.ended.aborted)).toEqual([true, true, true]);
});

test('an initialize that is too long to be kept is refused', async () => {
  const { server, gateway } = await world({});
  const reply = await post(gateway.url, 'alice', null, {
    ...INITIALIZE,
    params: { ...INITIALIZE.params, _meta: { x: 'y'.repeat(64 * 1024) } },
  });
  expect([reply.status, await reply.json()]).toMatchObject([400, { id: 0, error: { code: -32_600 } }]);
  expect(server.open.size).toBe(0);
});

test('an account listens on so many streams and no more', async () => {
  const { gateway } = await world({}, 2);
  const leave = new AbortController();
  // Held: what nobody has any more is closed with the next collection of garbage.
  const answers: Response[] = [];
  for (const account of ['alice', 'alice', 'alice', 'bob']) {
    const id = await open(gateway.url, account);
    const headers = { authorization: `Bearer ${account}`, 'mcp-session-id': id, accept: 'text/event-stream' };
    answers.push(await fetch(gateway.url, { headers, signal: leave.signal }));
  }
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 429, 200]);
  leave.abort();
  while (gateway.listens.count > 0) await new Promise((resolve) => setImmediate(resolve));
});
