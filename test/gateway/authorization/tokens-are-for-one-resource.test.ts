import { afterAll, beforeAll, expect, test } from 'vitest';
import { agentBlock } from '../../support/a2a-agent/index.ts';
import { startMcpFixture, type McpFixture } from '../../support/mcp-fixture.ts';
import { ask, startSpine, type Spine } from '../../support/spine.ts';
import { toolBlock } from '../../mcp/conformance/tool-block.ts';
import { createPerson, type Person } from './support/person.ts';
import { registerRaw } from './support/raw-client.ts';

/** Some of them read like routes of others. */
const AGENTS = ['acme', 'acme/card', 'acme/tasks/x', 'tasks/one', 'tasks/two'];

let fixture: McpFixture;
let spine: Spine;
let person: Person;
let ahead = 0;
beforeAll(async () => {
  fixture = await startMcpFixture();
  spine = await startSpine({
    mode: 'development',
    now: () => Date.now() + ahead,
    toml: `${toolBlock('acme/tools', fixture.url)}${toolBlock('other/tools', fixture.url)}${AGENTS.map((name) => agentBlock({ name, endpoint: 'http://127.0.0.1:1' })).join('')}\n[limits]\nanonymous_requests_per_minute = 1000\n`,
  });
  person = createPerson(spine.origin, spine.key);
});
afterAll(async () => {
  await spine.stop();
  await fixture.close();
});

const PLACES = {
  '/mcp': ['POST', { jsonrpc: '2.0', id: 1, method: 'tools/list' }],
  '/mcp/acme/tools': ['POST', { jsonrpc: '2.0', id: 1, method: 'tools/list' }],
  '/mcp/acme/tools/': ['POST', { jsonrpc: '2.0', id: 1, method: 'tools/list' }],
  '/mcp/other/tools': ['POST', { jsonrpc: '2.0', id: 1, method: 'tools/list' }],
  '/a2a/acme/agent': ['POST', { jsonrpc: '2.0', id: 1, method: 'message/send', params: {} }],
  '/api/v1/chat/completions': ['POST', ask('hello')],
  '/v1/chat/completions': ['POST', ask('hello')],
  '/api/v1/key': ['GET', undefined],
  '/api/v1beta/models/test/model:generateContent': ['POST', { contents: [{ parts: [{ text: 'hello' }] }] }],
  '/v1beta/models/test/model:countTokens': ['POST', { contents: [{ parts: [{ text: 'hello' }] }] }],
  '/v2/rerank': ['POST', { model: 'test/none', query: 'hello', documents: ['hello'] }],
  '/api/v1/mcp/acme/tools': ['POST', { jsonrpc: '2.0', id: 1, method: 'tools/list' }],
} as const;

const OF_API: readonly (keyof typeof PLACES)[] = [
  '/api/v1/chat/completions',
  '/v1/chat/completions',
  '/api/v1/key',
  '/api/v1beta/models/test/model:generateContent',
  '/v1beta/models/test/model:countTokens',
  '/v2/rerank',
];
/** The places at which a token for a resource is refused because it is for another one. */
const OF_TOOL: readonly (keyof typeof PLACES)[] = ['/mcp', '/mcp/other/tools', '/a2a/acme/agent', ...OF_API];
const REFUSED: Readonly<Record<string, readonly (keyof typeof PLACES)[]>> = {
  '': [],
  '/mcp': ['/a2a/acme/agent', ...OF_API],
  '/mcp/acme/tools': OF_TOOL,
  '/mcp/acme/tools/': OF_TOOL,
  '/a2a/acme/agent': [
    '/mcp',
    '/mcp/acme/tools',
    '/mcp/acme/tools/',
    '/mcp/other/tools',
    ...OF_API,
    '/api/v1/mcp/acme/tools',
  ],
  '/api/v1': [
    '/mcp',
    '/mcp/acme/tools',
    '/mcp/acme/tools/',
    '/mcp/other/tools',
    '/a2a/acme/agent',
    '/api/v1/mcp/acme/tools',
  ],
};

test.for(Object.keys(REFUSED))('a token for %j is refused at every other resource', async (path) => {
  const resource = path === '' ? spine.origin : spine.origin + path;
  const client = await registerRaw(spine.origin, { resource });
  const { access_token: token } = await client.signIn(person);
  const refused = [];
  for (const [place, [method, body]] of Object.entries(PLACES)) {
    const response = await fetch(spine.origin + place, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        accept: 'application/json, text/event-stream',
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    if (response.status === 401) {
      expect(text).toContain(`it is only for ${resource}`);
      refused.push(place);
    }
  }
  expect(refused.toSorted()).toEqual(REFUSED[path]!.toSorted());
  expect(await spine.faults()).toEqual([]);
});

const AGENT_PLACES = {
  acme: ['POST', '/a2a/acme'],
  'acme by its route': ['POST', '/a2a/acme/message:send'],
  'a task of acme': ['GET', '/a2a/acme/tasks/x'],
  'acme/card': ['POST', '/a2a/acme/card'],
  'acme/tasks/x': ['POST', '/a2a/acme/tasks/x'],
  'tasks/one': ['POST', '/a2a/tasks/one'],
  'tasks/two': ['POST', '/a2a/tasks/two'],
  'all agents': ['POST', '/a2a'],
} as const;
const OF_ACME = ['acme', 'acme by its route', 'a task of acme'];
const EVERY = Object.keys(AGENT_PLACES);

test.for([
  ['/a2a/acme', OF_ACME],
  ['/a2a/acme/message:send', OF_ACME],
  ['/api/v1/a2a/acme', OF_ACME],
  ['/a2a/acme/card', ['acme/card']],
  ['/a2a/acme/tasks/x', ['acme/tasks/x']],
  ['/a2a/tasks/one', ['tasks/one']],
  ['/a2a', EVERY],
  ['', EVERY],
] as const)('a token for %s is good at agents by their names, not by addresses', async ([path, good]) => {
  const client = await registerRaw(spine.origin, { resource: spine.origin + path });
  const { access_token: token } = await client.signIn(person);
  const taken = [];
  for (const [what, [method, place]] of Object.entries(AGENT_PLACES)) {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'message/send', params: {} });
    const response = await fetch(spine.origin + place, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        ...(method === 'GET' ? {} : { 'content-type': 'application/json' }),
      },
      ...(method === 'GET' ? {} : { body }),
    });
    if (!(await response.text()).includes('is only for ')) taken.push(what);
  }
  expect(taken.toSorted()).toEqual([...good].toSorted());
});

test.each([
  ['another gateway', 'https://elsewhere.example/mcp'],
  ['another port', 'http://127.0.0.1:1/mcp'],
  ['a fragment', '{origin}/mcp#x'],
  ['a query', '{origin}/mcp?x=1'],
  ['a path that is no resource', '{origin}/dashboard'],
  ['no address', 'mcp'],
])('a resource with %s gets no sign-in', async (_what, text) => {
  const client = await registerRaw(spine.origin, { resource: text.replace('{origin}', spine.origin) });
  const answer = await person.open(client.authorizeUrl());
  expect(answer.searchParams.get('error')).toBe('invalid_target');
  expect(answer.searchParams.get('iss')).toBe(spine.origin);
});

test.each([
  ['another one', (origin: string) => `${origin}/api/v1`],
  ['one of another gateway', () => 'https://elsewhere.example/mcp'],
  ['no address', () => 'mcp'],
])('a refresh for a resource that is %s is refused, and the token stays good', async (_what, resourceAt) => {
  const client = await registerRaw(spine.origin);
  const { refresh_token: refresh, access_token: token } = await client.signIn(person);
  const refused = { status: 400, body: { error: 'invalid_target' } };
  const resource = resourceAt(spine.origin);
  expect(await client.refresh(refresh!, { resource })).toMatchObject(refused);
  expect(await client.refresh(refresh!, { resource })).toMatchObject(refused);
  const { status, body } = await client.refresh(refresh!, { resource: `${spine.origin}/mcp` });
  expect(status).toBe(200);
  expect(await listWith(token)).toBe(200);
  expect(await listWith(body.access_token)).toBe(200);
  // It has been used now.
  ahead += 60_000;
  expect(await client.refresh(refresh!)).toMatchObject({ status: 400, body: { error: 'invalid_grant' } });
  expect(await listWith(body.access_token)).toBe(401);
});

test('a code for another resource is refused, and stays good', async () => {
  const client = await registerRaw(spine.origin);
  const answer = await person.allow(await person.open(client.authorizeUrl()));
  expect(await client.redeem(answer, { resource: `${spine.origin}/api/v1` })).toMatchObject({
    status: 400,
    body: { error: 'invalid_target' },
  });
  expect((await client.redeem(answer)).status).toBe(200);
});

/** The status of a call with a token. */
async function listWith(token: string): Promise<number> {
  const [method, body] = PLACES['/mcp'];
  const response = await fetch(`${spine.origin}/mcp`, {
    method,
    headers: {
      authorization: `Bearer ${token}`,
      accept: 'application/json, text/event-stream',
      'content-type': 'application/json',
    },
    body: JSON.stringify(body),
  });
  return response.status;
}

test('a refresh with a larger scope is refused, and the token stays good', async () => {
  const client = await registerRaw(spine.origin);
  const { refresh_token: refresh } = await client.signIn(person);
  expect(await client.refresh(refresh!, { scope: 'call account' })).toMatchObject({
    status: 400,
    body: { error: 'invalid_scope' },
  });
  expect(await client.refresh(refresh!)).toMatchObject({ status: 200, body: { scope: 'call' } });
});

test('each protocol says in its 401 where to get a token', async () => {
  const resources = {
    '/mcp': '/mcp',
    '/mcp/acme/tools': '/mcp/acme/tools',
    // Clients compare it with the address that they have.
    '/mcp/acme/tools/': '/mcp/acme/tools/',
    '/a2a/acme/agent': '/a2a/acme/agent',
    '/api/v1/chat/completions': '/api/v1',
    '/v1/chat/completions': '/api/v1',
    '/api/v1/key': '/api/v1',
  };
  for (const [place, resource] of Object.entries(resources)) {
    const [method, body] = PLACES[place as keyof typeof PLACES];
    const response = await fetch(spine.origin + place, {
      method,
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    expect([place, response.status]).toEqual([place, 401]);
    const metadata = `${spine.origin}/.well-known/oauth-protected-resource${resource}`;
    const challenge = response.headers.get('www-authenticate')!;
    expect(challenge).toMatch(/^Bearer realm="tollgate"/);
    expect(challenge).toContain(`scope="call", resource_metadata="${metadata}"`);
    expect(await (await fetch(metadata)).json()).toMatchObject({
      resource: spine.origin + resource,
      authorization_servers: [spine.origin],
      scopes_supported: ['call'],
    });
  }
});
