import { afterAll, beforeAll, expect, test } from 'vitest';
import { startMcpFixture, type McpFixture } from '../../support/mcp-fixture.ts';
import { connectV1, startAggregateSpine, textOf } from './aggregate-spine.ts';

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

test('a client with a session uses two services with the same names, and pays for the calls of tools alone', async () => {
  const spine = await startAggregateSpine({ 'acme/old': legacy.url, 'acme/new': modern.url });
  const client = await connectV1(spine.mcp, spine.key);
  expect(client.getServerVersion()?.name).toBe('tollgate');
  const before = (await spine.balance()).available;
  const { tools } = await client.listTools();
  const names = tools.map(({ name }) => name);
  expect(new Set(names).size).toBe(names.length);
  for (const service of ['acme_old', 'acme_new']) expect(names).toContain(`${service}__test_simple_text`);
  expect(tools[0]!._meta).toMatchObject({ 'tollgate/price': { per_call: '0.001', currency: 'USDC' } });

  for (const service of ['acme_old', 'acme_new']) {
    const slug = service.replace('_', '--');
    expect(textOf(await client.callTool({ name: `${service}__test_simple_text`, arguments: {} })), service).toMatch(
      /simple text response/,
    );
    const { contents } = await client.readResource({ uri: `${slug}+test://static-text` });
    expect(contents).toMatchObject([
      { uri: `${slug}+test://static-text`, text: expect.stringContaining('static text') },
    ]);
    const prompt = await client.getPrompt({
      name: `${service}__test_prompt_with_arguments`,
      arguments: { arg1: 'a', arg2: 'b' },
    });
    expect(prompt.messages).toHaveLength(1);
    const ref = { type: 'ref/prompt', name: `${service}__test_prompt_with_arguments` } as const;
    const { completion } = await client.complete({ ref, argument: { name: 'arg1', value: 'par' } });
    expect(completion.values).toEqual(['paris', 'park', 'party']);
    const wrapped = await client.callTool({
      name: 'call_tool',
      arguments: { name: `${service}__test_simple_text`, arguments: {} },
    });
    expect(wrapped._meta).toMatchObject({ 'tollgate/generation': { cost: '0.001' } });
    await expect(client.readResource({ uri: `${slug}+test://not-there` })).rejects.toThrow();
  }
  expect((await client.callTool({ name: 'acme_old__test_error_handling', arguments: {} })).isError).toBe(true);
  const found = await client.callTool({ name: 'find_tools', arguments: { query: 'progress' } });
  expect(found.structuredContent).toMatchObject({
    tools: expect.arrayContaining([expect.objectContaining({ name: 'acme_old__test_tool_with_progress' })]),
  });
  expect(before - (await spine.balance()).available).toBe(4_000n);
  expect(await spine.faults()).toEqual([]);
});

test('progress comes while a tool works, and what a server asks is answered by the client', async () => {
  const spine = await startAggregateSpine({ 'acme/old': legacy.url, 'acme/new': modern.url });
  const { CreateMessageRequestSchema, ElicitRequestSchema } = await import('@modelcontextprotocol/sdk/types.js');
  const client = await connectV1(spine.mcp, spine.key, (made) => {
    made.setRequestHandler(CreateMessageRequestSchema, ({ params }) => ({
      model: 'm',
      role: 'assistant',
      content: { type: 'text', text: `said ${JSON.stringify(params.messages[0]!.content)}` },
    }));
    made.setRequestHandler(ElicitRequestSchema, () => ({
      action: 'accept',
      content: { username: 'me', email: 'me@example.com' },
    }));
  });
  const ask = async (service: string) => {
    const progress: number[] = [];
    const options = { onprogress: ({ progress: at }: { progress: number }) => void progress.push(at) };
    await client.callTool({ name: `${service}__test_tool_with_progress`, arguments: {} }, undefined, options);
    expect(progress, service).toEqual([0, 50, 100]);
    expect(
      textOf(await client.callTool({ name: `${service}__test_sampling`, arguments: { prompt: `of ${service}` } })),
    ).toContain(`of ${service}`);
    expect(
      textOf(await client.callTool({ name: `${service}__test_elicitation`, arguments: { message: 'who?' } })),
    ).toContain('me@example.com');
  };
  // Both servers number what they ask from 0.
  await Promise.all(['acme_old', 'acme_new'].map(ask));
  expect(await spine.faults()).toEqual([]);
});
