import { Client as ClientV2, StreamableHTTPClientTransport as TransportV2 } from '@modelcontextprotocol/client';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { afterEach, beforeAll, expect, test } from 'vitest';
import { escrowOf } from '#billing';
import { accountOf, createPaperChain, PAPER_LEAST, payWith, type PaperPayment } from '../../support/paper-chain.ts';
import { startMcpFixture } from '../../support/mcp-fixture.ts';
import { startRawMcp } from '../../support/raw-mcp.ts';
import { startSpine, UNHURRIED } from '../../support/spine.ts';
import { callTool, modernPost, toolToml } from './modern-post.ts';
import { ofFile, spineOfFile } from '../../support/of-file.ts';

// What the MCP route does with a payment. The chain is one on paper; payments on real ones are tested where these are.

const ASKS =
  '{"resultType":"input_required","inputRequests":{"who":{"method":"elicitation/create","params":{"message":"who?"}}},"requestState":"round-1"}';
const PRICE = 500_000n;
/** Whoever calls another tool without money is told that there is none. */
const LISTED = ['any', 'asks', 'breaks'].map((name) => JSON.stringify({ name, inputSchema: { type: 'object' } }));

const chain = createPaperChain();
const server = ofFile(
  () =>
    startRawMcp(({ params }) => {
      if (params['name'] === 'asks' && params['requestState'] === undefined) return ASKS;
      if (params['name'] === 'breaks') return (response) => void response.writeHead(500).end();
      const claims = '"_meta":{"x402/payment-response":{"success":true,"transaction":"made-up"}}';
      return `{"resultType":"complete","content":[{"type":"text","text":"done"}],"tools":[],${claims}}`;
    }, LISTED),
  (one) => one.close(),
);
const fixture = ofFile(startMcpFixture, (one) => one.close());
const spine = spineOfFile(() => ({
  toml:
    UNHURRIED +
    toolToml({ name: 'paid', url: server.url, pricing: 'per_call = 0.5' }) +
    // Nobody knows what it lists.
    toolToml({ name: 'away', url: 'http://127.0.0.1:9/mcp', pricing: 'per_call = 0.5' }) +
    toolToml({ name: 'fixture', url: fixture.url, pricing: 'per_call = 0.5' }),
  payments: chain.payments,
}));
beforeAll(() => {
  chain.credit(spine.app.ledger);
});
afterEach(async () => {
  expect(await spine.faults()).toEqual([]);
  expect(spine.logs.join('\n')).not.toContain('paper-canary');
});

const with_ = (payment: Partial<PaperPayment> & { wallet: string }) => ({
  meta: { 'x402/payment': payWith({ amount: PRICE, ...payment }) },
});
const call = (tool: string, options: object = {}) => callTool(spine, 'paid', tool, { n: 1 }, { key: null, ...options });
const calls = () => server.asked.filter(({ method }) => method === 'tools/call').length;
const balanceOf = async (wallet: string) =>
  (await spine.app.ledger.balance(escrowOf(accountOf(wallet))))?.available ?? null;

test('a stranger looks around, is told the terms of a tool, pays, and has its result and receipt', async () => {
  expect((await modernPost(spine, '/mcp/paid', 'tools/list', {}, { key: null })).message.result.tools).toEqual([]);
  expect((await modernPost(spine, '/mcp', 'tools/list', {}, { key: null })).status).toBe(200);
  const before = calls();
  const { status, message } = await call('any');
  expect(status).toBe(200);
  expect(message.result).toMatchObject({
    isError: true,
    structuredContent: { x402Version: 2, accepts: [{ amount: String(PRICE) }] },
  });
  expect(JSON.parse(String(message.result.content?.['0']?.['text']))).toEqual(message.result.structuredContent);
  expect(calls()).toBe(before);

  const paid = await call('any', with_({ wallet: 'alice', nonce: 'alice-1' }));
  expect(paid.message.result).toMatchObject({
    content: [{ text: 'done' }],
    _meta: {
      'x402/payment-response': { success: true, transaction: 'tx-alice-1', payer: 'alice', amount: String(PRICE) },
    },
  });
  expect(await balanceOf('alice')).toBe(0n);
  expect(calls()).toBe(before + 1);
  // Neither the payment nor what says that it is one.
  expect(server.asked.at(-1)!.text).not.toMatch(/x402|paper-canary/);
});

test('what a server claims of payments is not passed on', async () => {
  const { message } = await callTool(spine, 'paid', 'any', {});
  expect(message.result.content).toEqual([{ type: 'text', text: 'done' }]);
  expect(message.result['_meta']?.['x402/payment-response']).toBeUndefined();
});

test('the same payment with the same call is one run and its kept result; with another call it is refused', async () => {
  const before = calls();
  const payment = with_({ wallet: 'once', nonce: 'once' });
  const first = await call('any', { ...payment, id: 'a' });
  const again = await call('any', { ...payment, id: 'b' });
  expect(again.message.id).toBe('b');
  expect(again.message.result).toEqual(first.message.result);
  expect(again.headers.get('idempotent-replayed')).toBe('true');
  expect(calls()).toBe(before + 1);
  const other = await callTool(spine, 'paid', 'any', { n: 2 }, { key: null, ...payment });
  expect(other.message.result).toMatchObject({
    isError: true,
    structuredContent: { error: 'This payment was used for something else' },
  });
  expect(calls()).toBe(before + 1);
});

test('whoever reads a payment on the chain, and knows the call, cannot have it run again under keys of his own', async () => {
  const before = calls();
  const payment = { wallet: 'drained', nonce: 'drained', amount: 4n * PRICE };
  const keyed = (key: string) => call('any', { meta: { ...with_(payment).meta, 'tollgate/idempotency-key': key } });
  expect((await call('any', with_(payment))).message.result.isError).toBeUndefined();
  for (const key of ['one', 'two']) expect((await keyed(key)).message.result).toMatchObject({ isError: true });
  expect(calls()).toBe(before + 1);
  expect(await balanceOf('drained')).toBe(3n * PRICE);
});

test('a tool whose name is no text can be named in terms', async () => {
  const body = JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: { name: '\ud800', arguments: {} },
  });
  const answer = await fetch(`${spine.origin}/mcp/away`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body,
  });
  expect(await answer.json()).toMatchObject({
    result: { isError: true, structuredContent: { accepts: [{ amount: String(PRICE) }] } },
  });
});

test('a payment that is not known to be settled is an error that says to repeat, and never new terms', async () => {
  chain.unsettled.add('slow');
  const payment = with_({ wallet: 'slow', nonce: 'slow' });
  const pending = await call('any', payment);
  expect(pending.message.error).toMatchObject({ code: -32019, data: { type: 'payment_pending', retry_after_s: 2 } });
  expect(pending.text).not.toContain('accepts');
  expect(pending.headers.get('retry-after')).toBe('2');
  chain.unsettled.delete('slow');
  expect((await call('any', payment)).message.result).toMatchObject({ content: [{ text: 'done' }] });
});

test('a tool that fails after its payment leaves the balance, which its retry is made from', async () => {
  const payment = with_({ wallet: 'unlucky', nonce: 'unlucky' });
  const failed = await call('breaks', payment);
  expect(failed.message.error).toMatchObject({
    data: { type: 'provider_unavailable', 'x402/payment-response': { transaction: 'tx-unlucky' } },
  });
  expect(await balanceOf('unlucky')).toBe(PRICE);
  await call('breaks', payment);
  expect(chain.credited.has('unlucky')).toBe(true);
  expect(await balanceOf('unlucky')).toBe(PRICE);
});

test('a payment that is wrong is told, with the terms where another one would do', async () => {
  const forged = await call('any', with_({ wallet: 'mallory', fault: 'forged' }));
  expect(forged.message.result).toMatchObject({
    isError: true,
    structuredContent: { accepts: [{}], error: expect.stringMatching(/signature/) as string },
  });
  const small = await call('any', with_({ wallet: 'small', amount: PAPER_LEAST }));
  expect(small.message.result).toMatchObject({
    isError: true,
    structuredContent: { error: expect.stringMatching(/0\.5 USDC/) as string },
  });
  const malformed = await call('any', { meta: { 'x402/payment': { x402Version: 1 } } });
  expect(malformed.message.error).toMatchObject({ code: -32602, data: { param: 'params._meta["x402/payment"]' } });
  expect(await balanceOf('small')).toBeNull();
});

test('an account with a key pays in place only what its balance does not reach for', async () => {
  const { key, account } = await spine.tenant('keyed', '0.2');
  const terms = await call('any', { key });
  expect(terms.message.result).toMatchObject({ structuredContent: { accepts: [{ amount: '300000' }] } });
  const paid = await call('any', { key, ...with_({ wallet: 'anyone', amount: 300_000n, nonce: 'keyed' }) });
  expect(paid.message.result).toMatchObject({ _meta: { 'x402/payment-response': { transaction: 'tx-keyed' } } });
  expect((await spine.app.ledger.balance(escrowOf(account)))?.available).toBe(0n);
});

test('the rounds of a call are one call, and one payment is for all of them', async () => {
  const payment = with_({ wallet: 'rounds', nonce: 'rounds' });
  const first = await call('asks', payment);
  expect(first.message.result.resultType).toBe('input_required');
  const answers = {
    inputResponses: { who: { action: 'accept', content: {} } },
    requestState: first.message.result.requestState,
  };
  // Nobody goes on with it but whoever pays.
  expect((await call('asks', { params: answers })).message.error).toMatchObject({ code: -32602 });
  // What is not paid yet ends nothing that was begun.
  chain.unsettled.add('rounds-2');
  const pending = await call('asks', { ...with_({ wallet: 'rounds', nonce: 'rounds-2' }), params: answers });
  expect(pending.message.error).toMatchObject({ code: -32019 });
  const second = await call('asks', { ...payment, params: answers });
  expect(second.message.result).toMatchObject({ content: [{ text: 'done' }] });
  expect(await balanceOf('rounds')).toBe(0n);
});

test('of what is kept for accounts, or costs a server its time, a stranger gets nothing', async () => {
  const before = server.asked.length;
  for (const [method, params] of [
    ['resources/read', { uri: 'file:///x' }],
    ['prompts/get', { name: 'x' }],
    ['completion/complete', {}],
    ['subscriptions/listen', { notifications: {} }],
  ] as const) {
    const reply = await modernPost(spine, '/mcp/paid', method, params, { key: null, id: `of ${method}` });
    expect([reply.status, reply.message.id]).toEqual([401, `of ${method}`]);
    expect(reply.headers.get('www-authenticate'), method).toMatch(/^Bearer/);
  }
  expect(server.asked.length).toBe(before);
});

test('real clients with a session: each has its own, bound to where it comes from', async () => {
  const transport = new StreamableHTTPClientTransport(new URL(`${spine.origin}/mcp/fixture`));
  const client = new Client({ name: 'v1', version: '1' });
  await client.connect(transport);
  const { tools } = await client.listTools();
  expect(tools.length).toBeGreaterThan(0);
  const unpaid = await client.callTool({ name: 'test_simple_text', arguments: {} });
  expect(unpaid).toMatchObject({ isError: true, structuredContent: { accepts: [{ amount: String(PRICE) }] } });
  const paid = await client.callTool({
    name: 'test_simple_text',
    arguments: {},
    _meta: { 'x402/payment': payWith({ wallet: 'session', amount: PRICE, nonce: 'session' }) },
  });
  expect(paid.isError ?? false).toBe(false);
  expect(paid._meta?.['x402/payment-response']).toMatchObject({ transaction: 'tx-session' });

  // The session is of no account with a key, and of no other network.
  const id = transport.sessionId!;
  const ping = (remoteAddress: string, headers: Record<string, string> = {}) =>
    spine.app.server.inject({
      method: 'POST',
      url: '/mcp/fixture',
      remoteAddress,
      headers: {
        accept: 'application/json, text/event-stream',
        'mcp-session-id': id,
        'mcp-protocol-version': '2025-11-25',
        ...headers,
      },
      payload: { jsonrpc: '2.0', id: 1, method: 'ping' },
    });
  expect((await ping('127.0.0.1')).statusCode).toBe(200);
  expect((await ping('192.0.2.1')).statusCode).toBe(404);
  expect((await ping('127.0.0.1', { authorization: `Bearer ${spine.key}` })).statusCode).toBe(404);
  // Nothing is told in it outside of calls.
  const listen = await fetch(`${spine.origin}/mcp/fixture`, {
    headers: { accept: 'text/event-stream', 'mcp-session-id': id },
  });
  expect(listen.status).toBe(405);
  await transport.terminateSession();
  await client.close();
  expect((await ping('127.0.0.1')).statusCode).toBe(404);
});

test('a real client of the modern revision pays, through the address of all services', async () => {
  const client = new ClientV2({ name: 'v2', version: '1' }, { versionNegotiation: { mode: 'auto' } });
  await client.connect(new TransportV2(new URL(`${spine.origin}/mcp`)));
  const { tools } = await client.listTools();
  const tool = tools.find(({ name }) => name.endsWith('test_simple_text'))!;
  const payment = payWith({ wallet: 'v2', amount: PRICE, nonce: 'v2' });
  const paid = await client.callTool({ name: tool.name, arguments: {}, _meta: { 'x402/payment': payment } });
  expect(paid.isError ?? false).toBe(false);
  expect(paid._meta?.['x402/payment-response']).toMatchObject({ transaction: 'tx-v2' });
  await client.close();
});

test('where clients get tokens from an issuer, a stranger is told so at once, as the flow of such clients begins with it', async () => {
  const chainOfIssuer = createPaperChain();
  const other = await startSpine({
    toml:
      '[server]\npublic_url = "https://gateway.test"\n[oauth]\nissuer = "https://issuer.test"\njwks_url = "http://127.0.0.1:9/keys"\n' +
      UNHURRIED +
      toolToml({ name: 'paid', url: server.url, pricing: 'per_call = 0.5' }),
    payments: chainOfIssuer.payments,
  });
  try {
    expect((await modernPost(other, '/mcp/paid', 'tools/list', {}, { key: null })).status).toBe(401);
  } finally {
    await other.stop();
  }
});
