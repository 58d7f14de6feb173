import { expect, test } from 'vitest';
import { events, json, startScripted } from './scripted-server.ts';
import { messagesOf, open, post, PRICE, startWorld } from './session-world.ts';

const call = (id: number | string) => ({
  jsonrpc: '2.0',
  id,
  method: 'tools/call',
  params: { name: 't', arguments: {} },
});
const note = { jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: 1, progress: 1 } };

async function world() {
  const server = await startScripted({
    answer({ message, text }, response) {
      if (message.id === 'streams')
        return events(response, 'data: {"jsonrpc":"2.0","method":"notifications/x"}\n\n').end(
          `data: {"jsonrpc":"2.0","id":"streams","result":{"content":[]}}\n\n`,
        );
      if (message.id === 'fails') return response.writeHead(500).end();
      return message.method === 'tools/call'
        ? json(response, `{"jsonrpc":"2.0","id":${/"id":([^,]+)/.exec(text)![1]},"result":{"content":[] }}`)
        : undefined;
    },
  });
  const started = await startWorld({ url: server.url });
  const gateway = await started.gateway();
  return { server, world: started, gateway, id: await open(gateway.url, 'alice') };
}

test('each message of a batch is a call of its own, and the responses come in one array', async () => {
  const { server, world: money, gateway, id } = await world();
  const reply = await post(gateway.url, 'alice', id, [
    call(1),
    note,
    call('streams'),
    call('fails'),
    { jsonrpc: '2.0', id: 'p', method: 'ping' },
  ]);
  expect([reply.status, reply.headers.get('content-type')]).toEqual([200, 'application/json']);
  expect(await reply.json()).toMatchObject([
    { id: 1, result: {} },
    { id: 'streams', result: {} },
    { id: 'fails', error: { code: -32_017 } },
    { id: 'p', result: {} },
  ]);
  expect(server.asked.filter(({ session, text }) => session === 'upstream-2' && text.startsWith('[')).length).toBe(0);
  expect(server.asked.some(({ message }) => message.method === 'notifications/progress')).toBe(true);
  expect(await money.charged('alice')).toBe(2n * PRICE);
  expect(await money.faults()).toEqual([]);
});

test('a batch without requests is taken with 202', async () => {
  const { gateway, id } = await world();
  const reply = await post(gateway.url, 'alice', id, [note, { jsonrpc: '2.0', id: 's', result: {} }]);
  expect([reply.status, await reply.text()]).toEqual([202, '']);
});

test("a batch in another account's session is no session", async () => {
  const { gateway, id, world: money } = await world();
  expect((await post(gateway.url, 'bob', id, [call(1)])).status).toBe(404);
  expect(await money.charged('alice')).toBe(0n);
});

const OTHER = '{"jsonrpc":"2.0","id":8,"result":{}}';
const NOTE = '{"jsonrpc":"2.0","method":"notifications/x"}';
const ANSWER = '{"jsonrpc":"2.0","id":7,"result":{"content":[ ]}}';

test.each([
  ['a reply', `\n[${NOTE},${ANSWER}]`, 'application/json', PRICE],
  ['an event', `id: e1\ndata: [${NOTE},${OTHER}, 5 ,${ANSWER}]\n\n`, 'text/event-stream', PRICE],
  ['a reply without a message', '[]', 'application/json', 0n],
  ['a reply with too many messages', `[${`${NOTE},`.repeat(1_000)}${ANSWER}]`, 'application/json', 0n],
])("a server's array as %s: its messages are read one by one", async (_name, body, type, charged) => {
  const server = await startScripted({
    answer: ({ message }, response) =>
      message.method === 'tools/call' ? response.writeHead(200, { 'content-type': type }).end(body) : undefined,
  });
  const started = await startWorld({ url: server.url });
  const gateway = await started.gateway();
  const reply = await post(gateway.url, 'alice', await open(gateway.url, 'alice'), call(7));
  const said = await messagesOf(reply);
  if (charged > 0n) expect(said).toMatchObject([JSON.parse(NOTE), JSON.parse(ANSWER)]);
  else expect(said).toMatchObject([{ id: 7, error: { code: -32_017 } }]);
  expect(await started.charged('alice')).toBe(charged);
  expect(await started.faults()).toEqual([]);
});
