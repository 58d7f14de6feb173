import { expect, test } from 'vitest';
import { useCallsWorld } from './support/calls-world.ts';

/** What a client is refused with has the shape of what it asked with, whatever is wrong. */

const calls = useCallsWorld();

async function post(url: string, body: string, headers: Readonly<Record<string, string>> = {}) {
  const response = await fetch(url, {
    method: 'POST',
    headers: { authorization: `Bearer ${calls.world.spine.key}`, 'content-type': 'application/json', ...headers },
    body,
  });
  return { status: response.status, type: response.headers.get('content-type')!, text: await response.text() };
}

test.each([
  ['params that are a text', '{"jsonrpc":"2.0","id":"a","method":"SendMessage","params":"x"}', '"a"', -32_602],
  ['params that are a list', '{"jsonrpc":"2.0","id":7,"method":"SendMessage","params":[]}', '7', -32_602],
  ['no method', '{"jsonrpc":"2.0","id":12345678901234567890,"params":{}}', '12345678901234567890', -32_600],
  ['another version of JSON-RPC', '{"jsonrpc":"1.0","id":"v","method":"SendMessage","params":{}}', '"v"', -32_600],
  ['an unknown method', '{"jsonrpc":"2.0","id":"m","method":"Nothing","params":{}}', '"m"', -32_601],
  ['an id that is none', '{"jsonrpc":"2.0","id":{},"method":"SendMessage","params":{}}', 'null', -32_600],
  ['an id twice', '{"jsonrpc":"2.0","id":1,"id":2,"method":"SendMessage","params":{}}', 'null', -32_600],
  ['no request at all', '[]', 'null', -32_600],
])('the id comes back with an error wherever it can be read: %s', async (_what, body, id, code) => {
  const { url } = await calls.serve();
  const { status, text } = await post(url, body);
  expect(status).toBe(200);
  expect(text).toContain(`{"jsonrpc":"2.0","id":${id},"error":{"code":${code},`);
});

test('a version that is not spoken here is told with the id, also where nothing else is right', async () => {
  const { url } = await calls.serve();
  const { text } = await post(url, '{"jsonrpc":"2.0","id":"v9","params":"x"}', { 'a2a-version': '9.9' });
  expect(JSON.parse(text)).toMatchObject({ id: 'v9', error: { code: -32_009 } });
});

test('a body of another Content-Type is refused by its own error', async () => {
  const { url } = await calls.serve();
  for (const type of ['text/plain', 'application/xml', 'application/x-www-form-urlencoded']) {
    const { status, text } = await post(url, '{}', { 'content-type': type, 'a2a-version': '1.0' });
    expect(status).toBe(200);
    expect(JSON.parse(text)).toMatchObject({
      error: {
        code: -32_005,
        message: expect.stringContaining(`application/json or application/a2a+json, not ${type}`) as unknown,
      },
    });
  }
  const rest = await post(`${url}/message:send`, '{}', { 'content-type': 'text/plain', 'a2a-version': '1.0' });
  expect(rest.status).toBe(400);
  expect(JSON.parse(rest.text)).toMatchObject({ error: { details: [{ reason: 'CONTENT_TYPE_NOT_SUPPORTED' }, {}] } });
});

test('a bare message is refused in the form of JSON-RPC, with the status of HTTP', async () => {
  const { url } = await calls.serve();
  const { origin } = calls.world.spine;
  const bare = (more: object) =>
    JSON.stringify({ message: { messageId: 'b', role: 'user', parts: [{ text: 'task x' }], ...more } });
  const shape = (code: number) => ({
    jsonrpc: '2.0',
    id: null,
    error: { code, message: expect.any(String) as unknown },
  });
  const cases: readonly [status: number, code: number, ReturnType<typeof post>][] = [
    [401, -32_010, post(url, bare({}), { authorization: 'Bearer svc-sk-wrong' })],
    [200, -32_700, post(url, '{"message":{')],
    [400, -32_602, post(url, bare({ parts: [] }))],
    [404, -32_001, post(url, bare({ taskId: 'nobodys' }))],
    [404, -32_013, post(`${origin}/a2a/nobody/here`, bare({}))],
  ];
  for (const [status, code, sent] of cases) {
    const reply = await sent;
    expect([reply.status, reply.type.split(';', 1)[0]], reply.text).toEqual([status, 'application/json']);
    expect(JSON.parse(reply.text)).toMatchObject(shape(code));
  }
  expect(JSON.parse((await post(url, bare({ messageId: 'fine' }))).text)).toMatchObject({
    status: { state: 'completed' },
  });
});

const send = (version: '0.3' | '1.0') =>
  JSON.stringify({
    message: { messageId: 'm', role: version === '1.0' ? 'ROLE_USER' : 'user', parts: [{ text: 'echo x' }] },
  });

test.each([
  ['1.0', '/message:send', send('1.0')],
  ['1.0', '/message:stream', send('1.0')],
  ['1.0', '/tasks/x:cancel', '{}'],
  ['1.0', '/tasks/x:subscribe', '{}'],
  ['1.0', '/tasks/x/pushNotificationConfigs', '{"url":"https://example.com"}'],
  ['0.3', '/v1/message:send', send('0.3')],
  ['0.3', '/v1/tasks/x:cancel', '{}'],
] as const)(
  'at an agent that does not exist, a route of HTTP+JSON is answered in its form: %s %s',
  async (...asked) => {
    const [version, path, body] = asked;
    const { origin } = calls.world.spine;
    for (const headers of [{ 'a2a-version': version }, {}]) {
      const { status, type, text } = await post(`${origin}/a2a/nobody/here${path}`, body, headers);
      expect(status).toBe(404);
      const message = expect.stringContaining('Agent not found: nobody/here') as string;
      if (version === '1.0') {
        expect(type).toContain('application/a2a+json');
        expect(JSON.parse(text)).toMatchObject({ error: { code: 404, status: 'NOT_FOUND', message } });
      } else expect(JSON.parse(text)).toMatchObject({ code: -32_013, message });
    }
    const refused = await post(`${origin}/a2a/nobody/here${path}`, body, { authorization: 'Bearer svc-sk-wrong' });
    expect(refused.status).toBe(401);
  },
);

test('a client that accepts plain JSON alone gets it from HTTP+JSON of 1.0', async () => {
  const { url } = await calls.serve();
  const typeOf = async (path: string, body: string, accept: string) => {
    const { type } = await post(`${url}${path}`, body, { 'a2a-version': '1.0', accept });
    return type.split(';', 1)[0];
  };
  for (const [path, body] of [
    ['/message:send', send('1.0')],
    ['/message:send', '{'],
    ['/tasks/nobodys:cancel', '{}'],
  ] as const)
    for (const [accept, type] of [
      ['application/json', 'application/json'],
      ['application/json;q=0.9, text/event-stream', 'application/json'],
      ['application/json, text/plain, */*', 'application/a2a+json'],
      ['application/json, application/a2a+json', 'application/a2a+json'],
      ['text/event-stream', 'application/a2a+json'],
    ] as const)
      expect([path, accept, await typeOf(path, body, accept)]).toEqual([path, accept, type]);
  const wrong = { 'a2a-version': '1.0', accept: 'application/json', authorization: 'Bearer svc-sk-wrong' };
  expect((await post(`${url}/message:send`, send('1.0'), wrong)).type).toContain('application/json');
});

test('who asked for a stream by JSON-RPC of 0.3 is told of an error in an event', async () => {
  const { url } = await calls.serve({ version: 'both' });
  const message = { kind: 'message', messageId: 'e', role: 'user', parts: [{ kind: 'text', text: 'task x' }] };
  for (const [method, params, code] of [
    ['message/stream', { message: { ...message, taskId: 'nobodys' } }, -32_001],
    ['message/stream', { message: { ...message, parts: [] } }, -32_602],
    ['tasks/resubscribe', { id: 'nobodys' }, -32_001],
  ] as const) {
    const { status, type, text } = await post(url, JSON.stringify({ jsonrpc: '2.0', id: 's-1', method, params }));
    expect([status, type.split(';', 1)[0]]).toEqual([200, 'text/event-stream']);
    const data = text.split('\n').filter((line) => line.startsWith('data: '));
    expect(data).toHaveLength(1);
    expect(JSON.parse(data[0]!.slice(6))).toMatchObject({ jsonrpc: '2.0', id: 's-1', error: { code } });
  }
  // What has a status of its own keeps it, and so do streams of 1.0.
  const refused = await post(
    url,
    JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'message/stream', params: { message } }),
    {
      authorization: 'Bearer x',
    },
  );
  expect([refused.status, refused.type.split(';', 1)[0]]).toEqual([401, 'application/json']);
  const modern = await post(
    url,
    JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SubscribeToTask', params: { id: 'nobodys' } }),
  );
  expect(modern.type).toContain('application/json');
});
