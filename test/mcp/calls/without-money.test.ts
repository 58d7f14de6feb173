import { expect, test } from 'vitest';
import { startRawMcp } from '../../support/raw-mcp.ts';
import { callTool, modernPost, toolToml } from './modern-post.ts';
import { ofFile, spineOfFile } from '../../support/of-file.ts';

const server = ofFile(
  () => startRawMcp(() => '{"resultType":"complete","content":[],"tools":[]}', ['{"name":"any"}']),
  (one) => one.close(),
);
const spine = spineOfFile(() => ({
  toml:
    toolToml({ name: 'paid', url: server.url, pricing: 'per_call = 0.5' }) +
    toolToml({ name: 'free', url: server.url, pricing: 'per_call = 0' }),
}));

test.each([
  ['little', '0.4', /Insufficient balance for estimated cost: 0\.5 USDC/],
  ['nothing', '0', /Insufficient balance|Escrow account not set up/],
] as const)(
  'an account with %s gets the terms of payment as a tool result, and the tool is not asked',
  async (name, usd, message) => {
    const { key } = await spine.tenant(name, usd);
    const seen = server.asked.length;
    const { status, message: reply } = await callTool(spine, 'paid', 'any', {}, { key, id: 'pay-1' });
    expect(status).toBe(200);
    expect(reply.id).toBe('pay-1');
    expect(reply.result).toMatchObject({
      isError: true,
      structuredContent: { x402Version: 2, accepts: [], resource: { url: 'mcp://tool/any' } },
    });
    const { structuredContent: terms, content } = reply.result;
    expect(terms?.['error']).toMatch(message);
    expect(JSON.parse(String(content?.['0']?.['text']))).toEqual(terms);
    expect(server.asked.length).toBe(seen);
    expect(await spine.faults()).toEqual([]);
  },
);

test.each([
  ['little', '0.4'],
  ['nothing', '0'],
])('an account with %s is told that there is no such tool, and not to pay for it', async (name, usd) => {
  const { key } = await spine.tenant(`${name}-unlisted`, usd);
  // The aggregate is asked first: it answers once the lists are known.
  await expect
    .poll(async () => (await modernPost(spine, '/mcp', 'tools/list', {}, { key })).text)
    .toContain('paid__any');
  const seen = server.asked.length;
  const { message: reply } = await callTool(spine, 'paid', 'any_other', {}, { key });
  expect(reply.error).toEqual({
    code: -32602,
    message: 'There is no tool any_other here. The nearest: any',
    data: { type: 'invalid_request', param: 'params.name' },
  });
  expect(server.asked.length).toBe(seen);
  expect(await spine.faults()).toEqual([]);
});

test('with money the server decides, because it may have a tool that it does not list', async () => {
  const { message: reply } = await callTool(spine, 'paid', 'any_other', {});
  expect(reply.result).toMatchObject({ content: [] });
});

test('what is free needs no money: lists, and tools without a price', async () => {
  const { key } = await spine.tenant('poor', '0.000001');
  expect((await modernPost(spine, '/mcp/paid', 'tools/list', {}, { key })).message.result.tools).toEqual([]);
  const free = await callTool(spine, 'free', 'any', {}, { key });
  expect(free.message.result?.isError ?? false).toBe(false);
});

test('without a key nobody gets in, and is told how', async () => {
  const reply = await callTool(spine, 'paid', 'any', {}, { key: null });
  expect(reply.status).toBe(401);
  expect(reply.headers.get('www-authenticate')).toMatch(/^Bearer realm="tollgate"/);
  expect(reply.message).toMatchObject({
    jsonrpc: '2.0',
    id: 1,
    error: { code: -32010, data: { type: 'unauthorized' } },
  });
});

test('a key may be limited to services', async () => {
  const { key } = await spine.tenant('limited', '1', { allowedServices: ['free'] });
  const reply = await callTool(spine, 'paid', 'any', {}, { key });
  expect(reply.message.error).toMatchObject({ code: -32012, message: expect.stringContaining('paid') });
});

test('an unknown service is named', async () => {
  const reply = await callTool(spine, 'no/such', 'any');
  expect(reply.status).toBe(404);
  expect(reply.message.error).toMatchObject({ code: -32013, message: 'Service not found: no/such' });
});
