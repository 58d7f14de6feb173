import { afterAll, beforeAll, expect, test } from 'vitest';
import { startAgent, agentBlock, type Agent } from '../../support/a2a-agent/index.ts';
import { BILLED_PATHS } from '../../peers/routes.ts';
import { createPaperChain } from '../../support/paper-chain.ts';
import { fill, routesOf } from '../../support/route-table.ts';
import { ask, startSpine, type Spine } from '../../support/spine.ts';

let open: Spine;
let closed: Spine;
let agent: Agent;
beforeAll(async () => {
  agent = await startAgent({ version: 'both' });
  const toml = agentBlock({ name: 'fixture/agent', endpoint: agent.url, pricing: 'per_call = 0.003' });
  const limits = '[limits]\nanonymous_requests_per_minute = 3\nburst = 200\n';
  open = await startSpine({ toml: `${limits}${toml}`, payments: createPaperChain().payments });
  closed = await startSpine({ toml });
});
afterAll(async () => {
  await open.stop();
  await closed.stop();
  await agent.close();
});

/** For everybody, whether payments are taken or not. */
const PUBLIC: readonly RegExp[] = [
  /^GET \/(|docs.*|openapi\.json|llms\.txt|health.*|ready.*|metrics|favicon.*|icon.*|logo.*)$/,
  /^GET \/(marketplace|(models|tools|agents|images|videos|providers)(\/\*)?|rankings|assets\/:file)$/,
  // The pages of accounts are the same document for everybody: what they show they ask for.
  /^GET \/(playground|authorize|sign-in|dashboard)(\/.*)?$/,
  /^GET \/(api\/v1\/)?(.*\/)?\.well-known\//,
  /^GET \/api\/v1\/(payments\/chains|models|model|services|agents|providers|tools|images|(images|video|videos|embeddings)\/models|ping|market|prices|auth\/nonce|auth\/session|analytics\/public|analytics\/service)(\/.*)?$/,
  /^GET \/api\/v1beta\/models(\/:model)?$/,
  /^GET \/admin$/,
  /^(GET|DELETE) \/admin\/v1\/session$/,
  /^GET \/api\/v1\/provider\/tunnel$/,
  /^(GET|POST) (\/api\/v1)?\/sse$/,
  /^POST \/api\/v1\/(rpc|provider\/.*|auth\/.*|push\/.*)$/,
];

/** Where calls are made, or money is brought: for those who pay. */
const PAID: readonly string[] = [
  // Whoever comes to JSON-RPC is let in by the method of the entry.
  ...BILLED_PATHS.filter((path) => path !== '/api/v1/rpc').map((path) => `POST ${path}`),
  'POST /api/v1/image/generate/quote',
  'POST /api/v1/image/edit/quote',
  'POST /api/v1/quotes',
  'POST /api/v1/video/quote',
  'POST /api/v1/topup',
  ...['/mcp', '/mcp/*', '/api/v1/mcp', '/api/v1/mcp/*'].flatMap((path) => [`GET ${path}`, `DELETE ${path}`]),
];

const HINT =
  'a route that bills calls belongs into BILLED_PATHS of test/peers/routes.ts, or is a wire of test/peers/wires.ts';

const knock = async (spine: Spine, method: string, path: string, headers: Record<string, string> = {}) => {
  const reply = await spine.app.server.inject({
    method: method as 'GET',
    url: path,
    headers,
    ...(method === 'POST' || method === 'PUT' || method === 'PATCH' ? { payload: {} } : {}),
  });
  return { status: reply.statusCode, challenge: reply.headers['www-authenticate'], text: reply.payload };
};

test('with payments taken, a stranger is let in where calls are made, and nowhere else', async () => {
  const wrong: string[] = [];
  let refused = 0;
  let let_in = 0;
  for (const { method, path } of routesOf(open.app.server)) {
    if (method === 'HEAD' || method === 'OPTIONS') continue;
    const name = `${method} ${path}`;
    const reply = await knock(open, method, fill(path, { '*': 'x' }));
    const before = await knock(closed, method, fill(path, { '*': 'x' }));
    if (PAID.includes(name)) {
      let_in += 1;
      if (reply.status === 401 || before.status !== 401) wrong.push(`${name}: ${before.status} → ${reply.status}`);
      continue;
    }
    // A method that a path does not take is refused as such: whoever asks gets nothing.
    if (reply.status === 405) continue;
    if (reply.status !== before.status) wrong.push(`${name}: ${before.status} → ${reply.status}`);
    if (reply.status === 401) refused += 1;
    else if (!PUBLIC.some((pattern) => pattern.test(name))) wrong.push(`${name}: ${reply.status} is public: ${HINT}`);
  }
  expect(wrong).toEqual([]);
  expect(let_in).toBe(PAID.length);
  expect(refused).toBeGreaterThan(15);
});

test('a credential that does not hold never becomes a stranger', async () => {
  for (const headers of [
    { authorization: 'Bearer svc-sk-v2-nonsense' },
    { authorization: 'Basic eDp5' },
    { authorization: '' },
    { 'x-api-key': 'nonsense' },
    { 'x-api-key': '' },
    { 'sign-in-with-x': 'bm9uc2Vuc2U=' },
    { 'x-siwx': '' },
  ])
    for (const path of ['/api/v1/chat/completions', '/mcp', '/a2a/fixture/agent']) {
      const reply = await knock(open, 'POST', path, headers);
      expect(reply.status, `${path} ${JSON.stringify(headers)}`).toBe(401);
      // Clients fill in a key that they do not have.
      expect(reply.text, path).toContain('in place, send no credential');
      expect((await knock(closed, 'POST', path, headers)).text, path).not.toContain('in place');
    }
});

test('of an agent a stranger gets its terms and nothing that is kept', async () => {
  const rpc = async (method: string, params: unknown, version: string) => {
    const reply = await open.app.server.inject({
      method: 'POST',
      url: '/a2a/fixture/agent',
      headers: { 'a2a-version': version },
      payload: { jsonrpc: '2.0', id: 1, method, params },
    });
    return { status: reply.statusCode, text: reply.payload };
  };
  const push = {
    taskId: 't',
    id: 't',
    pushNotificationConfigId: 'p',
    url: 'https://example.org',
    pushNotificationConfig: { url: 'https://example.org' },
  };
  for (const [version, methods] of Object.entries({
    '0.3': [
      'tasks/get',
      'tasks/cancel',
      'tasks/resubscribe',
      'tasks/pushNotificationConfig/set',
      'tasks/pushNotificationConfig/get',
    ],
    '1.0': [
      'GetTask',
      'ListTasks',
      'CancelTask',
      'SubscribeToTask',
      'CreateTaskPushNotificationConfig',
      'ListTaskPushNotificationConfigs',
    ],
  }))
    for (const method of [
      ...methods,
      version === '1.0' ? 'GetExtendedAgentCard' : 'agent/getAuthenticatedExtendedCard',
    ]) {
      const reply = await rpc(method, push, version);
      expect(reply.status, method).toBe(401);
      expect(reply.text, method).toContain('-32010');
    }
  for (const [method, path] of [
    ['GET', '/tasks'],
    ['GET', '/tasks/t'],
    ['POST', '/tasks/t:cancel'],
    ['GET', '/tasks/t:subscribe'],
    ['GET', '/extendedAgentCard'],
    ['DELETE', '/tasks/t/pushNotificationConfigs/p'],
  ] as const)
    expect((await knock(open, method, `/a2a/fixture/agent${path}`, { 'a2a-version': '1.0' })).status, path).toBe(401);
  expect(agent.received.filter(({ body }) => body.includes('"method"'))).toEqual([]);
});

test('strangers have a rate for each network, and not more for more addresses of it', async () => {
  const from = async (address: string) =>
    (
      await open.app.server.inject({
        method: 'POST',
        url: '/api/v1/chat/completions',
        remoteAddress: address,
        payload: ask('hello'),
      })
    ).statusCode;
  const statuses: number[] = [];
  for (let host = 1; host <= 204; host += 1) statuses.push(await from(`2001:db8:1:2::${host.toString(16)}`));
  expect(statuses.slice(0, 203).every((status) => status === 402)).toBe(true);
  expect(statuses.at(-1)).toBe(429);
  expect(await from('2001:db8:1:3::1')).toBe(402);
  expect(await from('192.0.2.9')).toBe(402);
});
