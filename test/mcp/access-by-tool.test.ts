import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { startMcpFixture, type McpFixture } from '../support/mcp-fixture.ts';
import { connectV1, connectV2, startAggregateSpine } from './aggregate/aggregate-spine.ts';

// A key that may use some tools of a server, as the SDKs' clients see it at both doors.

let fixture: McpFixture;
let spine: Awaited<ReturnType<typeof startAggregateSpine>>;
beforeAll(async () => {
  fixture = await startMcpFixture();
});
beforeEach(async () => {
  spine = await startAggregateSpine({ 'acme/all': fixture.url });
});
afterEach(async () => {
  expect(await spine.faults()).toEqual([]);
});
afterAll(() => fixture.close());

const PATTERNS = ['acme/all/test_*', '-acme/all/test_error_handling', '-acme/all/test_tool*'];
const CLIENTS = [
  ['v1', connectV1],
  ['v2', connectV2],
] as const;
const doors = () => [
  { url: spine.mcp, own: (name: string) => `acme_all__${name}`, uri: 'acme--all+test://static-text' },
  { url: `${spine.mcp}/acme/all`, own: (name: string) => name, uri: 'test://static-text' },
];

test.each(CLIENTS)('a client of the SDK %s lists and calls these tools alone', async (name, connect) => {
  const { key, account } = await spine.tenant(`limited-${name}`, '1', { allowedServices: PATTERNS });
  for (const { url, own, uri } of doors()) {
    const client = await connect(url, key);
    const { tools } = await client.listTools();
    const names = tools.map((tool) => tool.name).filter((tool) => !/^(?:ask|generate|find|call)_/.test(tool));
    expect(names.length).toBeGreaterThan(3);
    expect(names.every((tool) => tool.startsWith(own('test_')))).toBe(true);
    expect(names).toContain(own('test_simple_text'));
    expect(names).not.toContain(own('test_error_handling'));
    expect(names.filter((tool) => tool.startsWith(own('test_tool')))).toEqual([]);
    await client.callTool({ name: own('test_simple_text'), arguments: {} });
    const { available } = (await spine.app.ledger.balance(`escrow:${account}`))!;
    for (const other of ['test_error_handling', 'test_tool_with_progress'])
      await expect(client.callTool({ name: own(other), arguments: {} }), other).rejects.toMatchObject({
        code: -32012,
        message: expect.stringContaining(`This API key may not use the tool ${other} of acme/all`) as string,
      });
    // Nothing but tools was given.
    expect((await client.listResources()).resources).toEqual([]);
    expect((await client.listPrompts()).prompts).toEqual([]);
    await expect(client.readResource({ uri })).rejects.toThrow(/may not use acme\/all/);
    await expect(client.getPrompt({ name: own('test_simple_prompt') })).rejects.toThrow(/may not use acme\/all/);
    expect((await spine.app.ledger.balance(`escrow:${account}`))!.available).toBe(available);
    await client.close();
  }
});

test('a service as a whole has its prompts and resources too, less a tool', async () => {
  const { key } = await spine.tenant('whole', '1', { allowedServices: ['acme/all', '-acme/all/test_simple_text'] });
  for (const { url, own, uri } of doors()) {
    const client = await connectV2(url, key);
    expect((await client.listTools()).tools.map(({ name }) => name)).not.toContain(own('test_simple_text'));
    expect((await client.listPrompts()).prompts.map(({ name }) => name)).toContain(own('test_simple_prompt'));
    expect((await client.readResource({ uri })).contents).toHaveLength(1);
    await client.close();
  }
});

test('a repeat of a call by another key gets the kept answer only if that key may call the tool', async () => {
  const { key, account } = await spine.tenant('repeats', '1');
  const call = async (by: string) => {
    const response = await fetch(`${spine.mcp}/acme/all`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${by}` },
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method: 'tools/call',
        params: { name: 'test_simple_text', arguments: {}, _meta: { 'tollgate/idempotency-key': 'one' } },
      }),
    });
    return (await response.json()) as { result?: object; error?: { code: number } };
  };
  expect((await call(key)).result).toBeDefined();
  // Not restricted in any other way, so it shares the idempotency keys of its account.
  const { text: other } = (await spine.app.keys.create({
    account,
    label: 'other',
    kind: 'live',
    allowedServices: ['acme/all', '-acme/all/test_simple_text'],
  }))!;
  expect((await call(other)).error).toMatchObject({ code: -32012 });
});
