import fc from 'fast-check';
import { expect, test } from 'vitest';
import { openSocket, readAnswer } from '../../support/raw-http.ts';
import { useCallsWorld } from './support/calls-world.ts';

const calls = useCallsWorld();
const RUNS = process.env['TOLLGATE_DEEP'] === '1' ? 2_000 : 120;

interface Sent {
  readonly status: number;
  readonly text: string;
  readonly type: string;
}

async function send(
  url: string,
  init: Omit<RequestInit, 'headers'> & { readonly headers?: Readonly<Record<string, string>> },
): Promise<Sent> {
  const response = await fetch(url, {
    ...init,
    headers: { authorization: `Bearer ${calls.world.spine.key}`, 'content-type': 'application/json', ...init.headers },
  });
  return { status: response.status, text: await response.text(), type: response.headers.get('content-type') ?? '' };
}

/** Fails where an answer is a broken gateway, or none in the words of its wire. */
function judge({ status, text, type }: Sent, what: string, rest: boolean): void {
  const of = `${what} → ${status} ${text.slice(0, 300)}`;
  expect(status, of).not.toBe(500);
  expect(status, of).not.toBe(503);
  expect(text, of).not.toMatch(/-32603|Internal error|node:|\.ts:|at .*\(/);
  if (type.startsWith('text/event-stream') || status === 204 || status < 300) return;
  const said = JSON.parse(text) as {
    readonly jsonrpc?: string;
    readonly error?: { readonly code: unknown; readonly message: unknown };
    readonly code?: unknown;
  };
  const error = rest ? (said.error ?? said) : said.error;
  expect(typeof (error as { code?: unknown }).code, of).toBe('number');
  if (!rest) expect(said.jsonrpc, of).toBe('2.0');
}

const METHODS = [
  'SendMessage',
  'SendStreamingMessage',
  'GetTask',
  'ListTasks',
  'CancelTask',
  'SubscribeToTask',
  'CreateTaskPushNotificationConfig',
  'GetTaskPushNotificationConfig',
  'ListTaskPushNotificationConfigs',
  'DeleteTaskPushNotificationConfig',
  'GetExtendedAgentCard',
  'message/send',
  'message/stream',
  'tasks/get',
  'tasks/cancel',
  'tasks/resubscribe',
  'tasks/pushNotificationConfig/set',
  'tasks/pushNotificationConfig/get',
  'tasks/pushNotificationConfig/list',
  'tasks/pushNotificationConfig/delete',
  'agent/getAuthenticatedExtendedCard',
  'nothing',
  '',
];
const anything = fc.oneof(
  fc.jsonValue({ maxDepth: 3 }),
  fc.constantFrom<unknown>(
    null,
    '',
    'x',
    0,
    -1,
    1e308,
    true,
    [],
    {},
    '\u0000',
    '\ud800',
    'a'.repeat(300),
    { __proto__: null },
    { constructor: 1 },
  ),
);
const member = (names: readonly string[]) => fc.dictionary(fc.constantFrom(...names), anything, { maxKeys: 6 });
const part = fc.oneof(
  anything,
  member(['kind', 'text', 'raw', 'url', 'data', 'file', 'mediaType', 'filename', 'metadata']),
);
const message = fc.oneof(
  anything,
  fc.record(
    {
      messageId: fc.oneof(fc.uuid(), anything),
      role: fc.oneof(fc.constantFrom('ROLE_USER', 'user', 1), anything),
      parts: fc.oneof(fc.array(part, { maxLength: 3 }), anything),
      taskId: anything,
      contextId: anything,
      referenceTaskIds: anything,
      metadata: anything,
      kind: anything,
    },
    { requiredKeys: [] },
  ),
);
const params = fc.oneof(
  anything,
  fc.record(
    {
      message,
      id: anything,
      taskId: anything,
      tenant: anything,
      metadata: fc.oneof(anything, member(['tollgate/max_cost', 'tollgate/agent', 'tollgate/run'])),
      configuration: fc.oneof(
        anything,
        member([
          'blocking',
          'returnImmediately',
          'historyLength',
          'taskPushNotificationConfig',
          'pushNotificationConfig',
          'acceptedOutputModes',
        ]),
      ),
      historyLength: anything,
      pageSize: anything,
      pageToken: anything,
      status: anything,
      contextId: anything,
      statusTimestampAfter: anything,
      includeArtifacts: anything,
      pushNotificationConfig: anything,
      pushNotificationConfigId: anything,
      url: anything,
    },
    { requiredKeys: [] },
  ),
);
const version = fc.constantFrom<string | undefined>(
  undefined,
  '1.0',
  '0.3',
  '0.3.0',
  '1.0.7',
  '2.0',
  '',
  'x',
  '1.0, 0.3',
  '1.0,1.0',
);
const headersOf = (said: string | undefined) => (said === undefined ? {} : { 'a2a-version': said });

test('whatever JSON-RPC request comes, the answer is in its words, and the gateway is whole', async () => {
  const { url } = await calls.serve({ version: 'both' }, { pricing: 'per_call = 0' });
  const request = fc.record(
    {
      jsonrpc: fc.oneof({ weight: 9, arbitrary: fc.constant('2.0') }, { weight: 1, arbitrary: anything }),
      id: fc.oneof({ weight: 5, arbitrary: fc.integer() }, { weight: 3, arbitrary: anything }),
      method: fc.oneof({ weight: 9, arbitrary: fc.constantFrom(...METHODS) }, { weight: 1, arbitrary: anything }),
      params,
    },
    { requiredKeys: ['jsonrpc', 'method'] },
  );
  const body = fc.oneof(
    { weight: 12, arbitrary: request },
    { weight: 1, arbitrary: fc.array(request, { maxLength: 3 }) },
    { weight: 2, arbitrary: fc.record({ message }) },
    { weight: 1, arbitrary: anything },
  );
  const address = fc.constantFrom(
    url,
    url,
    url,
    `${url}/`,
    `${calls.world.spine.origin}/a2a`,
    url.replace('/a2a/', '/api/v1/a2a/'),
  );
  await fc.assert(
    fc.asyncProperty(address, body, version, async (to, said, spoken) => {
      const sent = await send(to, {
        method: 'POST',
        body: JSON.stringify(said),
        headers: headersOf(spoken),
        signal: AbortSignal.timeout(60_000),
      });
      // A bare message is answered as HTTP+JSON is.
      const bare = typeof said === 'object' && said !== null && 'message' in said && !('jsonrpc' in said);
      judge(sent, JSON.stringify(said).slice(0, 400), bare);
    }),
    { numRuns: RUNS, seed: 7 },
  );
});

test('whatever HTTP+JSON request comes, likewise', async () => {
  const { url } = await calls.serve({ version: 'both' }, { pricing: 'per_call = 0' });
  const routes = [
    '/message:send',
    '/message:stream',
    '/tasks',
    '/tasks/x',
    '/tasks/x:cancel',
    '/tasks/x:subscribe',
    '/tasks/x/pushNotificationConfigs',
    '/tasks/x/pushNotificationConfigs/y',
    '/extendedAgentCard',
    '/v1/message:send',
    '/v1/message:stream',
    '/v1/tasks/x',
    '/v1/tasks/x:cancel',
    '/v1/tasks/x:subscribe',
    '/v1/tasks/x/pushNotificationConfigs',
    '/v1/card',
    '/tenant/tasks/x',
  ];
  const query = fc.dictionary(
    fc.constantFrom(
      'historyLength',
      'pageSize',
      'pageToken',
      'status',
      'contextId',
      'A2A-Version',
      'a2a-version',
      'includeArtifacts',
      '__proto__',
      'x',
    ),
    fc.oneof(fc.string(), fc.constantFrom('1', '-1', '1.0', '0.3', 'true')),
    { maxKeys: 3 },
  );
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...routes),
      fc.constantFrom('GET', 'POST', 'DELETE'),
      query,
      fc.oneof(fc.record({ message }), params, fc.constant(undefined)),
      version,
      async (route, method, asked, said, spoken) => {
        const to = `${url}${route}?${new URLSearchParams(asked).toString()}`;
        const body = method === 'GET' || said === undefined ? {} : { body: JSON.stringify(said) };
        const sent = await send(to, {
          method,
          ...body,
          headers: headersOf(spoken),
          signal: AbortSignal.timeout(60_000),
        });
        judge(sent, `${method} ${to} ${JSON.stringify(said)?.slice(0, 300)}`, true);
      },
    ),
    { numRuns: RUNS, seed: 11 },
  );
});

test('bodies that are no requests are refused in words: broken, deep, huge, batches, without an id, other media types', async () => {
  const { url, agent } = await calls.serve();
  const head = '{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":';
  const bodies: readonly (readonly [string, string, number])[] = [
    ['empty', '', -32_700],
    ['broken', '{"jsonrpc":"2.0",', -32_700],
    ['bytes that are no text', Buffer.from([0x7b, 0xff, 0xfe, 0x7d]).toString('latin1'), -32_700],
    ['deep', `${head}${'['.repeat(5_000)}${']'.repeat(5_000)}}`, -32_602],
    ['deep and unclosed', `${head}${'{"a":'.repeat(5_000)}`, -32_602],
    ['too many keys', `${head}{${Array.from({ length: 20_000 }, (_, at) => `"k${at}":1`).join(',')}}}`, -32_602],
    ['a batch', `[${head}{}}]`, -32_600],
    ['an empty batch', '[]', -32_600],
    ['a batch of null', '[null]', -32_600],
    ['no id, and no message', '{"jsonrpc":"2.0","method":"SendMessage","params":{}}', -32_602],
    ['an id that is null, and no message', '{"jsonrpc":"2.0","id":null,"method":"SendMessage","params":{}}', -32_602],
    ['two ids', '{"jsonrpc":"2.0","id":null,"id":null,"method":"SendMessage","params":{}}', -32_600],
    ['an id that is null, of a response', '{"jsonrpc":"2.0","id":null,"result":{}}', -32_600],
    ['an id that is an object', '{"jsonrpc":"2.0","id":{},"method":"SendMessage","params":{}}', -32_600],
    ['another version of JSON-RPC', '{"jsonrpc":"1.0","id":1,"method":"SendMessage","params":{}}', -32_600],
    ['a response', '{"jsonrpc":"2.0","id":1,"result":{}}', -32_600],
    ['params that are a list', `${head}[]}`, -32_602],
    ['null', 'null', -32_600],
    ['a string', '"SendMessage"', -32_600],
  ];
  for (const [what, body, code] of bodies) {
    const { status, text } = await send(url, {
      method: 'POST',
      body: body === '' ? undefined! : body,
      headers: { 'a2a-version': '1.0' },
    });
    expect(status, `${what} ${text}`).toBeLessThan(500);
    const { error } = JSON.parse(text) as { error: { code: number } };
    expect(error.code, `${what} ${text}`).toBe(code);
  }
  const huge = await send(url, {
    method: 'POST',
    body: `${head}{"message":{"messageId":"h","role":"ROLE_USER","parts":[{"text":"${'x'.repeat(2_000_000)}"}]}}}`,
    headers: { 'a2a-version': '1.0' },
  });
  expect(huge.status).toBe(413);
  judge(huge, 'huge', false);
  for (const type of [
    'text/plain',
    'application/xml',
    'multipart/form-data; boundary=x',
    'application/x-www-form-urlencoded',
  ]) {
    const refused = await send(url, {
      method: 'POST',
      body: `${head}{}}`,
      headers: { 'content-type': type, 'a2a-version': '1.0' },
    });
    expect(refused.status, type).toBeLessThan(500);
    expect(refused.text, type).toContain('"error"');
    judge(refused, type, false);
  }
  expect(agent.received.filter(({ method }) => method !== null)).toEqual([]);
});

test('ids of requests come back letter by letter', async () => {
  const { url } = await calls.serve();
  for (const id of [
    '9007199254740993',
    '123456789012345678901234567890',
    '-0',
    '1.50',
    '1e3',
    '""',
    '"\\u0061\\/"',
    `"${'x'.repeat(1_000)}"`,
    '"__proto__"',
  ]) {
    const { text } = await send(url, {
      method: 'POST',
      body: `{"jsonrpc":"2.0","id":${id},"method":"GetTask","params":{"id":"none"}}`,
      headers: { 'a2a-version': '1.0' },
    });
    expect(text.startsWith(`{"jsonrpc":"2.0","id":${id},"error"`), text.slice(0, 200)).toBe(true);
    const unknown = await send(url, {
      method: 'POST',
      body: `{"jsonrpc":"2.0","id":${id},"method":"Nothing","params":{}}`,
      headers: { 'a2a-version': '9.9' },
    });
    expect(unknown.text).toContain(`"id":${id},"error":{"code":-32009`);
  }
});

test('addresses that are none lead to no agent, and never around its price', async () => {
  const { agent, service, proxy } = await calls.serve();
  const { origin, key } = calls.world.spine;
  const body =
    '{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"path","role":"ROLE_USER","parts":[{"text":"task x"}]}}}';
  const [family] = service.split('/');
  const paths = [
    '/a2a/..%2f',
    '/a2a/%2e%2e/',
    '/a2a/../a2a',
    `/a2a/${family}`,
    `/a2a/${family}%2f`,
    `/a2a//${service}`,
    `/a2a/${service}%00`,
    `/a2a/${service}/..`,
    `/a2a/${service}/../../keys`,
    `/a2a/${service};x=1`,
    `/a2a/${service}%`,
    '/a2a/%',
    '/a2a/%ff%fe',
    `/a2a/${service}/tasks`,
    `/a2a/${service}/message:send/x`,
    `/a2a/${service}:nothing`,
    `/a2a/nobody:${service}`,
    `/a2a/${'/'.repeat(4_000)}`,
    `/a2a/${'a/'.repeat(4_000)}message:send`,
    `/a2a/${'%2f'.repeat(2_000)}`,
  ];
  const ask = async (path: string, verb = 'POST') => {
    const socket = await openSocket(origin);
    const answer = readAnswer(socket);
    const text = verb === 'POST' ? body : '';
    socket.write(
      `${verb} ${path} HTTP/1.1\r\nhost: x.example\r\nauthorization: Bearer ${key}\r\ncontent-type: application/json\r\na2a-version: 1.0\r\ncontent-length: ${text.length}\r\nconnection: close\r\n\r\n${text}`,
    );
    return answer.finally(() => socket.destroy());
  };
  for (const path of paths) {
    const { status, body: text } = await ask(path);
    expect(status, `${path} ${text}`).toBeLessThan(500);
    if (status === 200) expect(text, path).toContain('"error"');
    else expect(status, path).toBeGreaterThanOrEqual(400);
  }
  expect(agent.received.filter(({ method, path }) => method !== null || path.includes('message'))).toEqual([]);
  // Encoded or not, pinned or with a suffix, by either root: the same agent at the same price.
  const same = [
    `/a2a/${service.replace('/', '%2F')}`,
    `/a2a/${service}`,
    `/a2a/${service}/`,
    `/api/v1/a2a/${service}`,
    `/a2a/${proxy.id}:${service}`,
    `/a2a/${encodeURIComponent(`${proxy.id}:${service}`)}`,
    `/a2a/${service}:floor`,
    `/a2a/${service}?x=1`,
  ];
  const spent = await calls.spent(async () => {
    for (const path of same) {
      const { status, body: text } = await ask(path);
      expect(status, `${path} ${text}`).toBe(200);
      expect(text, path).toContain('TASK_STATE_COMPLETED');
    }
  });
  // One message: all of them are the same service's.
  expect(spent).toBe(1_000n);
  for (const verb of ['PUT', 'PATCH', 'OPTIONS', 'HEAD', 'TRACE', 'DELETE', 'GET']) {
    const { status } = await ask(`/a2a/${service}`, verb);
    expect(status, verb).toBeGreaterThanOrEqual(200);
    expect(status, verb).toBeLessThan(501);
    expect(status, verb).not.toBe(500);
  }
  for (const [verb, path] of [
    ['GET', '/message:send'],
    ['DELETE', '/tasks/x'],
    ['POST', '/tasks'],
    ['GET', '/tasks/x:cancel'],
    ['POST', '/extendedAgentCard'],
  ] as const) {
    const { status, body: text } = await ask(`/a2a/${service}${path}`, verb);
    expect(status, `${verb} ${path} ${text}`).toBeGreaterThanOrEqual(400);
    expect(status).toBeLessThan(500);
  }
});
