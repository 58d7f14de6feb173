import { afterAll, beforeAll, expect, test } from 'vitest';
import { startMcpFixture, type McpFixture } from '../../support/mcp-fixture.ts';
import { startRawMcp } from '../../support/raw-mcp.ts';
import { modernPost } from '../calls/modern-post.ts';
import { call, connectV1, connectV2, messagesOf, startAggregateSpine, textOf } from './aggregate-spine.ts';
import { startPartServer } from './part-server.ts';

let legacy: McpFixture;
let modern: McpFixture;
beforeAll(async () => {
  legacy = await startMcpFixture({ eras: 'legacy' });
  modern = await startMcpFixture({ eras: 'modern' });
});
afterAll(async () => {
  await legacy.close();
  await modern.close();
});

test('a modern client uses two services with the same names, and pays for the calls of tools alone', async () => {
  const spine = await startAggregateSpine({ 'acme/old': legacy.url, 'acme/new': modern.url });
  const client = await connectV2(spine.mcp, spine.key);
  const before = (await spine.balance()).available;
  const { tools } = await client.listTools();
  expect(new Set(tools.map(({ name }) => name)).size).toBe(tools.length);
  expect(tools[0]!._meta).toMatchObject({ 'tollgate/price': { per_call: '0.001', currency: 'USDC' } });
  for (const service of ['acme_old', 'acme_new']) {
    const slug = service.replace('_', '--');
    expect(textOf(await client.callTool({ name: `${service}__test_simple_text`, arguments: {} })), service).toMatch(
      /simple text response/,
    );
    const uri = `${slug}+test://template/7/data`;
    expect((await client.readResource({ uri })).contents).toMatchObject([
      { uri, text: expect.stringContaining('"7"') },
    ]);
    const embedded = await client.callTool({ name: `${service}__test_embedded_resource`, arguments: {} });
    expect(embedded.content).toMatchObject([{ resource: { uri: `${slug}+test://embedded-resource` } }]);
    expect((await client.getPrompt({ name: `${service}__test_simple_prompt` })).messages).toHaveLength(1);
    const ref = { type: 'ref/prompt', name: `${service}__test_prompt_with_arguments` } as const;
    expect((await client.complete({ ref, argument: { name: 'arg1', value: 'par' } })).completion.values).toHaveLength(
      3,
    );
    const progress: number[] = [];
    await client.callTool(
      { name: `${service}__test_tool_with_progress`, arguments: {} },
      { onprogress: ({ progress: at }) => void progress.push(at) },
    );
    expect(progress, service).toEqual([0, 50, 100]);
  }
  expect((await client.listResources()).resources.map(({ uri }) => uri)).toContain('acme--new+test://static-text');
  expect((await client.listPrompts()).prompts.map(({ name }) => name)).toContain('acme_old__test_simple_prompt');
  expect(
    (await client.callTool({ name: 'find_tools', arguments: { query: 'progress' } })).structuredContent,
  ).toMatchObject({
    // Beside the two of the gateway's own that are there for the model.
    searched: tools.length - 2,
  });
  await expect(client.callTool({ name: 'acme_old__test_simple_txt', arguments: {} })).rejects.toThrow(
    /test_simple_text/,
  );
  expect(before - (await spine.balance()).available).toBe(6_000n);
  expect(await spine.faults()).toEqual([]);
});

const ASKS =
  '{"resultType":"input_required","inputRequests":{"who":{"method":"elicitation/create","params":{"message":"who?"}}},"requestState":"mine"}';
const DONE = '{"resultType":"complete","content":[{"type":"text","text":"done"}]}';
const TOOL =
  '{"name":"ask","inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}}';

test.each(['directly', 'through call_tool'])('a call of two rounds is one call, %s', async (how) => {
  const server = await startRawMcp(({ params }) => (params['requestState'] === 'mine' ? DONE : ASKS), [TOOL]);
  const spine = await startAggregateSpine({ 'acme/asks': server.url, 'acme/new': modern.url });
  const direct = how === 'directly';
  const args = { region: 'eu' };
  const params = direct
    ? { name: 'acme_asks__ask', arguments: args }
    : { name: 'call_tool', arguments: { name: 'acme_asks__ask', arguments: args } };
  const headers: Record<string, string> = direct ? { 'mcp-param-region': 'eu' } : {};
  const before = await spine.balance();
  const first = await modernPost(spine, '/mcp', 'tools/call', params, { headers });
  expect(first.message.result).toMatchObject({ resultType: 'input_required' });
  expect((await spine.balance()).locked - before.locked).toBe(1_000n);
  const round = {
    ...params,
    requestState: first.message.result.requestState,
    inputResponses: { who: { action: 'decline' } },
  };
  const second = await modernPost(spine, '/mcp', 'tools/call', round, { headers });
  expect(second.message.result).toMatchObject({
    content: [{ text: 'done' }],
    _meta: { 'tollgate/generation': { cost: '0.001' } },
  });
  expect(await spine.balance()).toEqual({ available: before.available - 1_000n, locked: before.locked });
  // The server knows its own name and nothing of the other, and gets the headers that its schema asks for.
  for (const { params: seen, headers: sent } of server.asked) {
    expect(seen).toMatchObject({ name: 'ask', arguments: args });
    expect(sent).toMatchObject({ 'mcp-name': 'ask', 'mcp-param-region': 'eu' });
  }
  expect(server.asked).toHaveLength(2);
  if (direct)
    expect((await modernPost(spine, '/mcp', 'tools/call', params)).message.error).toMatchObject({ code: -32020 });
  expect(await spine.faults()).toEqual([]);
  await spine.stop();
  await server.close();
});

test('a bare client lists, finds, calls and reads', async () => {
  const spine = await startAggregateSpine({ 'acme/old': legacy.url, 'acme/new': modern.url });
  const ask = async (method: string, params: object = {}) => {
    const reply = await spine.send({ jsonrpc: '2.0', id: 1, method, params }, null, { accept: 'application/json' });
    return { status: reply.status, message: (await messagesOf(reply))[0]! };
  };
  const before = (await spine.balance()).available;
  const listed = (await ask('tools/list')).message['result'] as { readonly tools: readonly unknown[] };
  expect(listed).not.toHaveProperty('resultType');
  expect(listed.tools.length).toBeGreaterThan(20);
  for (const service of ['acme_old', 'acme_new']) {
    const slug = service.replace('_', '--');
    const called = await spine.send(call(2, `${service}__test_simple_text`), null, { accept: 'application/json' });
    expect(called.headers.get('x-cost-usd')).toBe('0.001');
    expect(await messagesOf(called)).toMatchObject([{ id: 2, result: { content: [{ type: 'text' }] } }]);
    const uri = `${slug}+test://static-text`;
    expect((await ask('resources/read', { uri })).message['result']).toMatchObject({ contents: [{ uri }] });
  }
  expect((await ask('ping')).message['result']).toEqual({});
  expect(await ask('tools/call', { name: 'nowhere__x' })).toMatchObject({
    status: 200,
    message: { error: { code: -32602 } },
  });
  expect(before - (await spine.balance()).available).toBe(2_000n);
  expect(await spine.faults()).toEqual([]);
});

test('above 200 tools they are found and not listed, unless the address or the key selects fewer; other lists come in pages', async () => {
  const many = await startPartServer();
  many.tools.push(...Array.from({ length: 300 }, (_, i) => `thing_${i}`));
  many.resources.push(...Array.from({ length: 299 }, (_, i) => `file_${String(i).padStart(3, '0')}`));
  const few = await startPartServer();
  const spine = await startAggregateSpine({ 'acme/many': many.url, 'acme/few': few.url });
  const limited = (await spine.tenant('limited', '1', { allowedServices: ['acme/few'] })).key;
  const some = `${spine.mcp}?services=acme/few,acme/gone`;
  for (const connect of [connectV1, connectV2]) {
    const names = async (url: string, key: string) => {
      const client = await connect(url, key);
      return (await client.listTools()).tools.map(({ name }) => name);
    };
    expect(await names(spine.mcp, spine.key)).toEqual(['find_tools', 'call_tool', 'ask_model']);
    expect(await names(some, spine.key)).toEqual(['acme_few__ask']);
    // A repeated parameter must not select everything.
    expect(await names(`${some}&services=model/none`, spine.key)).toEqual(['acme_few__ask']);
    expect(await names(spine.mcp, limited)).toEqual(['acme_few__ask']);
    expect(await names(`${spine.mcp}?services=acme/many`, limited)).toEqual([]);
  }
  const uris: string[] = [];
  let cursor: string | undefined;
  let pages = 0;
  do {
    const { message } = await modernPost(spine, '/mcp', 'resources/list', cursor === undefined ? {} : { cursor });
    const page = message.result as unknown as {
      readonly resources: readonly { readonly uri: string }[];
      readonly nextCursor?: string;
    };
    uris.push(...page.resources.map(({ uri }) => uri));
    cursor = page.nextCursor;
    pages++;
  } while (cursor !== undefined);
  expect([pages, new Set(uris).size]).toEqual([2, 301]);

  // A key that may not use a service cannot find or call what it has.
  const client = await connectV1(spine.mcp, limited);
  const found = await client.callTool({ name: 'find_tools', arguments: { query: 'thing' } });
  expect(found.structuredContent).toEqual({ tools: [], searched: 1 });
  await expect(client.callTool({ name: 'acme_many__thing_1', arguments: {} })).rejects.toThrow(/no tool/);
  expect(many.heard('tools/call')).toEqual([]);
});
