import { expect, test } from 'vitest';
import { json, startScripted } from './scripted-server.ts';
import { open, post, startWorld } from './session-world.ts';

const LIST = { jsonrpc: '2.0', id: 1, method: 'tools/list' };

async function world() {
  const server = await startScripted({
    answer: ({ session, message }, response) =>
      message.method === 'tools/list'
        ? json(response, { jsonrpc: '2.0', id: message.id, result: { tools: [], of: session } })
        : undefined,
  });
  const started = await startWorld({ url: server.url });
  return { server, world: started, gateway: await started.gateway() };
}

test('every session has one of its own at the server, whose id no client sees', async () => {
  const { server, gateway } = await world();
  const sessions = [await open(gateway.url, 'alice'), await open(gateway.url, 'alice'), await open(gateway.url, 'bob')];
  expect(new Set(sessions).size).toBe(3);
  for (const id of sessions) expect(id).toMatch(/^[\w-]{43}$/);
  const accounts = ['alice', 'alice', 'bob'];
  const seen = await Promise.all(
    sessions.map(
      async (id, n) =>
        ((await (await post(gateway.url, accounts[n]!, id, LIST)).json()) as { result: { of: string } }).result.of,
    ),
  );
  // The first one was the gateway's own question who is there.
  expect(seen).toEqual(['upstream-2', 'upstream-3', 'upstream-4']);
  expect(server.open.size).toBe(3);
});

test('a restricted key uses and ends its own sessions alone; its account uses all', async () => {
  const { gateway } = await world();
  const [accounts, own] = [await open(gateway.url, 'alice'), await open(gateway.url, 'alice_one')];
  const statuses = async (key: string, id: string) => {
    const headers = { authorization: `Bearer ${key}`, 'mcp-session-id': id };
    const listening = await fetch(gateway.url, { headers: { ...headers, accept: 'text/event-stream' } });
    await listening.body?.cancel();
    return [(await post(gateway.url, key, id, LIST)).status, listening.status === 404 ? 404 : 200];
  };
  const end = async (key: string, id: string) =>
    (await fetch(gateway.url, { method: 'DELETE', headers: { authorization: `Bearer ${key}`, 'mcp-session-id': id } }))
      .status;
  for (const [key, id] of [
    ['alice_one', accounts],
    ['alice_two', own],
    ['bob', own],
  ] as const) {
    expect(await statuses(key, id)).toEqual([404, 404]);
    expect(await end(key, id)).toBe(404);
  }
  for (const key of ['alice_one', 'alice']) expect(await statuses(key, own)).toEqual([200, 200]);
  expect([await end('alice_one', own), await end('alice', accounts)]).toEqual([204, 204]);
});

test('the session of another account, an unknown one, one that has ended and no id at all look the same', async () => {
  const { gateway } = await world();
  const alices = await open(gateway.url, 'alice');
  const ended = await open(gateway.url, 'bob');
  const asBob = { method: 'DELETE', headers: { authorization: 'Bearer bob', 'mcp-session-id': ended } };
  expect((await fetch(gateway.url, asBob)).status).toBe(204);
  const answers = [];
  for (const id of [alices, 'A'.repeat(43), ended, 'upstream-1', `${alices}'--`]) {
    const reply = await post(gateway.url, 'bob', id, LIST);
    const listening = await fetch(gateway.url, {
      headers: { authorization: 'Bearer bob', 'mcp-session-id': id, accept: 'text/event-stream' },
    });
    const ending = await fetch(gateway.url, { ...asBob, headers: { ...asBob.headers, 'mcp-session-id': id } });
    answers.push([
      reply.status,
      await reply.text(),
      listening.status,
      await listening.text(),
      ending.status,
      await ending.text(),
    ]);
  }
  const lost = (id: string) =>
    `{"jsonrpc":"2.0","id":${id},"error":{"code":-32001,"message":"Session not found: send initialize to open one"}}`;
  expect(answers[0]).toEqual([404, lost('1'), 404, lost('null'), 404, lost('null')]);
  for (const answer of answers) expect(answer).toEqual(answers[0]);
  expect((await post(gateway.url, 'alice', alices, LIST)).status).toBe(200);
});

test('a session is of no use at another service', async () => {
  const { gateway } = await world();
  const id = await open(gateway.url, 'alice');
  expect((await post(`${gateway.url}2`, 'alice', id, LIST)).status).toBe(404);
  expect((await post(gateway.url, 'alice', id, LIST)).status).toBe(200);
});

test('what a client came with does not reach the server', async () => {
  const { server, gateway } = await world();
  const id = await open(gateway.url, 'alice');
  const own = { cookie: 'secret=1', 'x-own': 'secret', 'idempotency-key': 'secret' };
  await post(gateway.url, 'alice', id, LIST, own);
  await post(gateway.url, 'alice', id, { jsonrpc: '2.0', method: 'notifications/initialized' }, own);
  await (
    await fetch(gateway.url, {
      headers: { ...own, authorization: 'Bearer alice', 'mcp-session-id': id, accept: 'text/event-stream' },
    })
  ).text();
  expect(server.asked.length).toBeGreaterThan(4);
  for (const { headers } of server.asked) {
    expect(headers.authorization).toBe('Bearer providers-own');
    expect(JSON.stringify(headers)).not.toMatch(/secret|alice/);
    expect(JSON.stringify(headers)).not.toContain(id);
  }
});
