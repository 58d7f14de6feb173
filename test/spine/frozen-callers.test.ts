import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { escrowOf, treasuryOf } from '#billing';
import { giftOf, asAgent, type Gift } from '../a2a/calls/support/nested.ts';
import { taskResult } from '../a2a/calls/support/raw-served.ts';
import { issuerKey, jwkOf, mint } from '../gateway/auth/oauth/issuer.ts';
import { callTool, modernPost, toolToml } from '../mcp/calls/modern-post.ts';
import { askTask, beginTask } from '../mcp/tasks/task-client.ts';
import { startTaskServer, type TaskServer } from '../mcp/tasks/task-server.ts';
import { startVideoProvider, videoBlock, type VideoProvider } from '../media/support/video-provider.ts';
import { agentBlock, startAgent, startCardedAgent, type Agent, type RawAgent } from '../support/a2a-agent/index.ts';
import { adHoc } from '../support/ad-hoc.ts';
import { accountOf, createPaperChain, payWith, toHeader } from '../support/paper-chain.ts';
import { ask, MODEL, startSpine, UNHURRIED, type Spine } from '../support/spine.ts';
import { evmWallet, signInHeaders } from '../support/wallets.ts';

/*
 * What a frozen account may do, by every kind of credential, and what becomes of its work that is under way. That each
 * route refuses a frozen account is tested in peer-primitives.test.ts.
 */

const FROZEN =
  'This account is frozen by the operator of this gateway: it cannot make calls or withdraw. Ask the operator';
const AUDIENCE = 'https://gate.example/mcp';
const FREEZE_ROW = adHoc(
  "INSERT INTO consumers (account, label, created_at, state) VALUES ($1, '', 0, 'frozen') ON CONFLICT (account) DO UPDATE SET state = 'frozen'",
);

const signer = issuerKey('first');
const issuer = createServer((request, response) =>
  request.url === '/keys' ? response.end(JSON.stringify({ keys: [jwkOf(signer)] })) : response.writeHead(404).end(),
);
let issuerUrl: string;
let spine: Spine;
let tools: TaskServer;
let agent: Agent;
let videos: VideoProvider;
/** An agent that gets money for calls of its own. The test says what it does. */
let nesting: RawAgent;
let nest: (gift: Gift) => Promise<void> = async () => {};

const services = () =>
  `${UNHURRIED}anonymous_requests_per_minute = 1000000\n[media]\nfree_bytes_min = 0\n` +
  toolToml({ name: 'test/tool', url: tools.url }) +
  agentBlock({ name: 'test/agent', endpoint: agent.url }) +
  agentBlock({
    name: 'test/nesting',
    endpoint: nesting.url,
    provider: 'Nesting',
    pricing: 'per_call = 0.001\nnested_max = 0.05',
  }) +
  videoBlock({ url: videos.url });

beforeAll(async () => {
  await new Promise<void>((resolve) => issuer.listen(0, '127.0.0.1', resolve));
  issuerUrl = `http://127.0.0.1:${(issuer.address() as AddressInfo).port}`;
  [tools, agent, videos] = await Promise.all([
    startTaskServer(),
    startAgent({ version: 'both' }),
    startVideoProvider(),
  ]);
  videos.begin(() => ({ status: 'in_progress' }));
  nesting = await startCardedAgent(async (exchange) => {
    const { request, result } = exchange;
    const { id } = request.params as { readonly id?: string };
    if (id !== undefined) return result(taskResult(id, 'COMPLETED').task);
    await nest(giftOf(exchange).metadata!);
    result(taskResult(`nested-${crypto.randomUUID()}`, 'COMPLETED'));
  });
  const oauth = `[oauth]\nissuer = "${issuerUrl}"\naudience = "${AUDIENCE}"\njwks_url = "${issuerUrl}/keys"\n`;
  spine = await startSpine({ toml: services() + oauth });
});
afterAll(async () => {
  await spine.stop();
  await Promise.all([tools.close(), agent.close(), videos.close(), nesting.close()]);
  issuer.close();
});
afterEach(async () => {
  spine.provider.hold(null);
  expect(await spine.faults()).toEqual([]);
});

type Headers = Readonly<Record<string, string>>;
const bearer = (key: string): Headers => ({ authorization: `Bearer ${key}` });

async function send(method: string, path: string, headers: Headers, body?: unknown) {
  const response = await fetch(spine.origin + path, {
    method,
    headers: { ...headers, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: response.status, text: await response.text(), headers: response.headers };
}

async function become(account: string, state: 'freeze' | 'unfreeze'): Promise<void> {
  const path = `/admin/v1/accounts/${encodeURIComponent(account)}/${state}`;
  const { status, text } = await send('POST', path, bearer(spine.adminKey), { reason: 'a test' });
  expect(status, text).toBe(200);
}

const availableOf = async (account: string) => (await spine.app.ledger.balance(escrowOf(account)))?.available ?? 0n;

let made = 0;
const message = (text: string, more: object = {}) => ({
  kind: 'message',
  messageId: `m-${(made += 1)}`,
  role: 'user',
  parts: [{ kind: 'text', text }],
  ...more,
});
const rpc = (method: string, params: object) => ({ jsonrpc: '2.0', id: 1, method, params });

/** One call by each protocol. */
const CALLS: readonly (readonly [what: string, path: string, body: () => unknown])[] = [
  ['chat', '/api/v1/chat/completions', () => ask('hi !tokens:1')],
  [
    'messages',
    '/api/v1/messages',
    () => ({ model: MODEL, max_tokens: 5, messages: [{ role: 'user', content: 'hi !tokens:1' }] }),
  ],
  ['a video', '/api/v1/videos', () => ({ model: 'test/film', prompt: 'A tollgate', seconds: '4' })],
  ['MCP', '/mcp/test/tool', () => rpc('tools/call', { name: 'job', arguments: {} })],
  ['MCP of all', '/mcp', () => rpc('tools/call', { name: 'test_tool__job', arguments: {} })],
  ['A2A', '/a2a/test/agent', () => rpc('message/send', { message: message('echo') })],
  [
    '/rpc',
    '/api/v1/rpc',
    () => [rpc('chat/completions', ask('hi')), rpc('message/send', { agent: 'test/agent', message: message('echo') })],
  ],
];

interface Signed {
  readonly account: string;
  readonly headers: Headers;
  /** Cookies and payments are for the HTTP API alone. */
  readonly calls?: readonly string[];
}

async function funded(account: string, usd = 1_000_000n): Promise<void> {
  const to = escrowOf(account);
  await spine.app.ledger.transfer({ id: `fund ${account}`, from: treasuryOf('operator'), to, amount: usd, memo: '' });
}

const tenant = (name: string) => spine.tenant(name, '1');

const CREDENTIALS: readonly (readonly [string, () => Promise<Signed>])[] = [
  ['an API key', async () => tenant('by-key').then(({ account, key }) => ({ account, headers: bearer(key) }))],
  [
    'a restricted API key',
    async () => {
      const { account } = await tenant('by-limited-key');
      const { key } = await spine.tenant('by-limited-key', '0', { limit: 500_000n });
      return { account, headers: { 'x-api-key': key } };
    },
  ],
  [
    'the sign-in of a wallet',
    async () => {
      const wallet = evmWallet();
      await funded(wallet.account);
      return { account: wallet.account, headers: await signInHeaders(wallet) };
    },
  ],
  [
    'an access token',
    async () => {
      const claims = { iss: issuerUrl, sub: 'alice', aud: AUDIENCE, exp: Math.floor(Date.now() / 1_000) + 600 };
      const headers = bearer(mint(signer, claims));
      const account = `oauth:${issuerUrl}:alice`;
      const { text } = await send('GET', '/api/v1/session/balance', headers);
      expect(text).toContain('alice');
      await funded((JSON.parse(text) as { caip_account_id: string }).caip_account_id ?? account);
      return { account: (JSON.parse(text) as { caip_account_id: string }).caip_account_id, headers };
    },
  ],
  [
    'the session of a browser',
    async () => {
      const { account, key } = await tenant('by-browser');
      const signedIn = await fetch(`${spine.url}/auth/session`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-tollgate-web': '1' },
        body: JSON.stringify({ api_key: key }),
      });
      const cookie = signedIn.headers.getSetCookie()[0]!.split(';')[0]!;
      return { account, headers: { cookie, 'x-tollgate-web': '1' }, calls: ['chat', 'messages', 'a video'] };
    },
  ],
  [
    'the key of a member of an organisation',
    async () => {
      const owner = await tenant('founder');
      const created = await send('POST', '/api/v1/organisations', bearer(owner.key), {
        label: 'Frozen Org',
        name: 'Olga',
      });
      const { account } = (JSON.parse(created.text) as { data: { account: string } }).data;
      await funded(account);
      const headers = { ...bearer(owner.key), 'x-tollgate-account': account };
      const key = await send('POST', '/api/v1/keys', headers, { name: 'of a member' });
      return { account, headers: bearer((JSON.parse(key.text) as { key: string }).key) };
    },
  ],
];

describe.each(CREDENTIALS)('by %s', (_name, signIn) => {
  test('a frozen account makes no call, still sees its balance, and goes on when it is unfrozen', async () => {
    const { account, headers, calls } = await signIn();
    const own = CALLS.filter(([what]) => calls === undefined || calls.includes(what));
    await become(account, 'freeze');
    const before = await availableOf(account);
    expect(before).toBeGreaterThan(0n);
    const asked = [spine.provider.log.length, tools.ids.length, agent.asked.length, videos.jobs.size];
    for (const [what, path, body] of own) {
      const { status, text } = await send('POST', path, headers, body());
      expect(text, what).toContain(FROZEN);
      expect([200, 403], what).toContain(status);
      if (what === '/rpc') expect(text.split(FROZEN)).toHaveLength(3);
    }
    expect([spine.provider.log.length, tools.ids.length, agent.asked.length, videos.jobs.size]).toEqual(asked);
    expect((await send('GET', '/api/v1/session/balance', headers)).status).toBe(200);
    expect(await availableOf(account)).toBe(before);
    await become(account, 'unfreeze');
    expect((await send('POST', '/api/v1/chat/completions', headers, ask('hi !tokens:1'))).status).toBe(200);
    expect(await availableOf(account)).toBeLessThan(before);
  });
});

test('a member whose own account is frozen still acts for its organisation, until it is removed', async () => {
  const owner = await tenant('frozen-member');
  const created = await send('POST', '/api/v1/organisations', bearer(owner.key), { label: 'Open Org', name: 'Olga' });
  const { account } = (JSON.parse(created.text) as { data: { account: string } }).data;
  await funded(account);
  const acting = { ...bearer(owner.key), 'x-tollgate-account': account };
  const { text } = await send('POST', '/api/v1/keys', acting, { name: 'of a member' });
  const { key } = JSON.parse(text) as { key: string };
  await become(owner.account, 'freeze');
  expect((await send('POST', '/api/v1/chat/completions', bearer(owner.key), ask('hi'))).text).toContain(FROZEN);
  expect((await send('POST', '/api/v1/chat/completions', bearer(key), ask('hi !tokens:1'))).status).toBe(200);
  expect((await send('GET', '/api/v1/session/balance', acting)).status).toBe(200);
});

test('the owner of a frozen account replaces a stolen key', async () => {
  const { account, key, hash } = await tenant('stolen');
  await become(account, 'freeze');
  const made = await send('POST', '/api/v1/keys', bearer(key), { name: 'new' });
  expect(made.status).toBe(201);
  const fresh = bearer((JSON.parse(made.text) as { key: string }).key);
  expect((await send('DELETE', `/api/v1/keys/${hash}`, fresh)).status).toBe(200);
  expect((await send('POST', '/api/v1/chat/completions', fresh, ask('hi'))).text).toContain(FROZEN);
  await become(account, 'unfreeze');
  expect((await send('POST', '/api/v1/chat/completions', bearer(key), ask('hi'))).status).toBe(401);
  expect((await send('POST', '/api/v1/chat/completions', fresh, ask('hi !tokens:1'))).status).toBe(200);
});

test('no payment in place is taken from a frozen wallet, at any door', async () => {
  // With an issuer of access tokens, a client of MCP is asked for one.
  const chain = createPaperChain();
  const paid = await startSpine({ toml: services(), payments: chain.payments, provider: spine.provider });
  onTestFinished(() => paid.stop());
  chain.credit(paid.app.ledger);
  const wallet = 'frozen-payer';
  await paid.app.database.query(FREEZE_ROW, [accountOf(wallet)]);
  const before = [spine.provider.log.length, tools.ids.length, agent.asked.length, videos.jobs.size];
  const payment = () => payWith({ wallet, amount: 2_000_000n });
  const pays = async (path: string, body: unknown, headers: Headers = { 'payment-signature': toHeader(payment()) }) => {
    const answer = await fetch(paid.origin + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    });
    const text = await answer.text();
    expect(text, path).toContain(FROZEN);
    expect(answer.status === 403 || !path.startsWith('/api/v1/') || path.endsWith('/rpc'), path).toBe(true);
  };
  for (const [, path, body] of CALLS)
    if (path.startsWith('/api/v1/') && !path.endsWith('/rpc')) await pays(path, body());
  await pays('/api/v1/rpc', rpc('chat/completions', ask('hi')));
  const metadata = { 'x402.payment.status': 'payment-submitted', 'x402.payment.payload': payment() };
  await pays('/a2a/test/agent', rpc('message/send', { message: message('echo', { metadata }) }), {});
  const meta = { 'x402/payment': payment() };
  expect((await callTool(paid, 'test/tool', 'job', {}, { key: null, meta })).text).toContain(FROZEN);
  expect([spine.provider.log.length, tools.ids.length, agent.asked.length, videos.jobs.size]).toEqual(before);
  expect([...chain.taken, ...chain.credited]).toEqual([]);
  expect(await paid.faults()).toEqual([]);
});

describe('what is under way when the account is frozen', () => {
  test('tasks of agents are read, listened to and canceled, and take no new message', async () => {
    const { account, key } = await tenant('with-agent-tasks');
    const at = async (method: string, params: object) => {
      const { text } = await send('POST', '/a2a/test/agent', bearer(key), rpc(method, params));
      return JSON.parse(text) as { result?: { id: string; status: { state: string } }; error?: { message: string } };
    };
    const begin = async () =>
      (await at('message/send', { message: message('wait'), configuration: { blocking: false } })).result!.id;
    const [canceled, finished] = [await begin(), await begin()];
    await become(account, 'freeze');
    expect((await at('tasks/get', { id: canceled })).result?.status.state).toBe('working');
    expect((await send('GET', `/a2a/test/agent/v1/tasks/${canceled}`, bearer(key))).status).toBe(200);
    const more = await at('message/send', { message: message('more', { taskId: canceled }) });
    expect(more.error?.message).toBe(FROZEN);
    const streamed = await send(
      'POST',
      '/a2a/test/agent',
      bearer(key),
      rpc('message/stream', { message: message('echo') }),
    );
    expect(streamed.text).toContain(FROZEN);
    expect((await at('tasks/cancel', { id: canceled })).result?.status.state).toBe('canceled');
    agent.finish(finished);
    const end = async () => (await at('tasks/get', { id: finished })).result?.status.state;
    while ((await end()) !== 'completed') await new Promise((resolve) => setTimeout(resolve, 20));
    await spine.quiet();
    expect(await availableOf(account)).toBe(999_000n);
  });

  test('a stream goes on to its end and is charged', async () => {
    const { account, key } = await tenant('with-a-stream');
    const open = Promise.withResolvers<void>();
    spine.provider.hold(open.promise);
    const seen = spine.provider.log.length;
    const running = send('POST', '/api/v1/chat/completions', bearer(key), ask('hi !tokens:5', { stream: true }));
    while (spine.provider.log.length === seen) await new Promise((resolve) => setImmediate(resolve));
    await become(account, 'freeze');
    open.resolve();
    const { text } = await running;
    expect(text).toContain('[DONE]');
    await spine.quiet();
    expect(await availableOf(account)).toBeLessThan(1_000_000n);
  });

  test('tasks of tools and videos are read and canceled; an open session of MCP stays, and calls nothing', async () => {
    const { account, key } = await tenant('with-tools');
    const door = { origin: spine.origin, key };
    const { id } = await beginTask(door, 'test/tool');
    const video = await send('POST', '/api/v1/videos', bearer(key), { model: 'test/film', prompt: 'A', seconds: '4' });
    const { id: film } = JSON.parse(video.text) as { id: string };
    const initialize = rpc('initialize', {
      protocolVersion: '2025-11-25',
      capabilities: {},
      clientInfo: { name: 'test', version: '1' },
    });
    const accept = { ...bearer(key), accept: 'application/json, text/event-stream' };
    const sessions = await Promise.all(
      ['/mcp/test/tool', '/mcp'].map(async (path) => {
        const opened = await send('POST', path, accept, initialize);
        return { path, headers: { ...accept, 'mcp-session-id': opened.headers.get('mcp-session-id')! } };
      }),
    );
    await become(account, 'freeze');

    const began = tools.ids.length;
    for (const { path, headers } of sessions) {
      expect((await send('POST', path, headers, rpc('ping', {}))).text, path).toContain('"result"');
      const name = path === '/mcp' ? 'test_tool__job' : 'job';
      const called = await send('POST', path, headers, rpc('tools/call', { name, arguments: {} }));
      expect(called.text, path).toContain(FROZEN);
    }
    expect((await callTool(door, 'test/tool', 'job')).text).toContain(FROZEN);
    const asks = { name: 'ask_model', arguments: { model: MODEL, prompt: 'hi', max_tokens: 5 } };
    expect((await modernPost(door, '/mcp', 'tools/call', asks)).text).toContain(FROZEN);
    expect(tools.ids.length).toBe(began);
    expect((await askTask(door, '/mcp/test/tool', 'tasks/get', id)).message.result).toMatchObject({ taskId: id });
    expect((await askTask(door, '/mcp/test/tool', 'tasks/cancel', id)).message.error).toBeUndefined();
    for (const { path, headers } of sessions) expect((await send('DELETE', path, headers)).status).toBe(204);

    const shown = await send('POST', '/api/v1/video/retrieve', bearer(key), { task_id: film });
    expect(shown.status).toBe(200);
    expect((await send('POST', '/api/v1/video/cancel', bearer(key), { task_id: film })).status).toBe(200);
    expect((await askTask(door, '/mcp/test/tool', 'tasks/get', id)).message.result).toMatchObject({
      status: 'cancelled',
    });
    await spine.quiet();
    expect((await spine.app.ledger.balance(escrowOf(account)))?.locked).toBe(0n);
  });

  test('an agent finishes the calls of its run from the money that was locked before, and no more', async () => {
    const { account, key } = await tenant('with-a-run');
    let token = '';
    const outcomes: { readonly status: number; readonly text: string }[] = [];
    nest = async (gift) => {
      ({ token } = gift);
      await become(account, 'freeze');
      const as = asAgent(spine, token);
      outcomes.push(await as.chat('hi !tokens:1'), await as.agent('test/agent', 'echo'));
      // More than the run has: the frozen account gives nothing beyond its lock.
      outcomes.push(await as.chat('hi', { max_tokens: 4_096, n: 8 }));
    };
    const sent = await send(
      'POST',
      '/a2a/test/nesting',
      bearer(key),
      rpc('message/send', { message: message('work') }),
    );
    expect(sent.status).toBe(200);
    expect(outcomes.map(({ status }) => status)).toEqual([200, 200, 402]);
    await spine.quiet();
    const { available, locked } = (await spine.app.ledger.balance(escrowOf(account)))!;
    expect(locked).toBe(0n);
    expect(available).toBeGreaterThanOrEqual(1_000_000n - 51_000n);
    expect(available).toBeLessThan(999_000n);
    expect((await asAgent(spine, token).chat('hi')).status).toBe(403);
    expect((await send('POST', '/api/v1/chat/completions', bearer(key), ask('hi'))).text).toContain(FROZEN);
  });
});
