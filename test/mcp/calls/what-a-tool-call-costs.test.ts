import { expect, test } from 'vitest';
import { startRawMcp, type Asked, type RawAnswer } from '../../support/raw-mcp.ts';
import { startSpine } from '../../support/spine.ts';
import { callTool, modernPost, toolToml } from './modern-post.ts';
import { ofFile, spineOfFile } from '../../support/of-file.ts';

const OK = '{"resultType":"complete","content":[{"type":"text","text":"done"}]}';

/** Each tool ends in its own way. */
const ENDINGS: Readonly<Record<string, (asked: Asked) => RawAnswer>> = {
  complete: () => OK,
  dear: () => OK,
  failed: () => '{"resultType":"complete","isError":true,"content":[]}',
  refused:
    ({ idText }) =>
    (response) =>
      void response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(`{"jsonrpc":"2.0","id":${idText},"error":{"code":-32602,"message":"no"}}`),
  broken: () => (response) =>
    void response
      .writeHead(200, { 'content-type': 'application/json', 'content-length': 999 })
      .write('{', () => response.destroy()),
  garbage: () => (response) => void response.writeHead(200, { 'content-type': 'application/json' }).end('no json'),
  silent: () => (response) =>
    void response.writeHead(200, { 'content-type': 'text/event-stream' }).end(': nothing\n\n'),
  used: () => '{"resultType":"complete","content":[],"_meta":{"tollgate/usage":{"completion":1000,"second":1.5}}}',
  unused: () => '{"resultType":"complete","content":[],"_meta":{"tollgate/usage":{"completion":0,"second":0}}}',
  greedy: () => '{"resultType":"complete","content":[],"_meta":{"tollgate/usage":{"completion":1000000000}}}',
  forgetful: () => OK,
  wrong: () => '{"resultType":"complete","content":[],"_meta":{"tollgate/usage":{"completion":-5}}}',
};

const server = ofFile(
  () => startRawMcp((asked) => ENDINGS[String(asked.params['name'])]!(asked)),
  (one) => one.close(),
);
const spine = spineOfFile(() => ({
  toml:
    toolToml({ name: 'flat', url: server.url, pricing: 'per_call = 0.001\n[tools.pricing.tools]\ndear = 0.02' }) +
    toolToml({
      name: 'used',
      url: server.url,
      pricing: 'per_call = 0.001\ncompletion = 10\nper_second = 0.001\nper_call_max = 0.05',
    }) +
    toolToml({ name: 'free', url: server.url, pricing: 'per_call = 0' }),
}));

/** What the account pays for one call. */
async function costOf(
  service: string,
  tool: string,
): Promise<{ cost: bigint; reply: Awaited<ReturnType<typeof callTool>> }> {
  await spine.quiet();
  const before = (await spine.balance()).available;
  const reply = await callTool(spine, service, tool);
  await spine.quiet();
  expect(await spine.faults()).toEqual([]);
  return { cost: before - (await spine.balance()).available, reply };
}

test.each([
  ['flat', 'complete', 1_000n],
  ['flat', 'dear', 20_000n],
  ['flat', 'failed', 0n],
  ['flat', 'refused', 0n],
  ['flat', 'broken', 0n],
  ['flat', 'garbage', 0n],
  ['flat', 'silent', 0n],
  ['free', 'complete', 0n],
  // 0.001 for the call, 1,000 tokens at 10 USD a million, a second and a half as two.
  ['used', 'used', 13_000n],
  ['used', 'unused', 1_000n],
  ['used', 'greedy', 50_000n],
  ['used', 'forgetful', 0n],
  ['used', 'wrong', 0n],
  ['used', 'failed', 0n],
] as const)('%s: %s costs %s micro-USD', async (service, tool, micro) => {
  const { cost, reply } = await costOf(service, tool);
  expect(cost).toBe(micro);
  if (micro > 0n) {
    const told = reply.message.result['_meta']?.['tollgate/generation'];
    expect(BigInt(Math.round(Number(told?.['cost']) * 1e6))).toBe(micro);
    const id = String(told?.['id']);
    expect(await spine.generation(id)).toMatchObject({ id });
  }
});

test('a tool that breaks answers with an error that names the provider', async () => {
  const { reply } = await costOf('flat', 'broken');
  expect(reply.status).toBe(502);
  expect(reply.message.error).toMatchObject({ code: -32017, message: expect.stringContaining('Tools') });
});

test('what is free by the table holds no lock', async () => {
  const before = (await spine.locks()).length;
  const free = await startRawMcp(() => '{"resultType":"complete","tools":[],"ttlMs":0,"cacheScope":"private"}');
  const other = await startSpine({ toml: toolToml({ name: 'lists', url: free.url }) });
  expect((await modernPost(other, '/mcp/lists', 'tools/list')).message.result.tools).toEqual([]);
  expect(await other.locks()).toEqual([]);
  expect((await spine.locks()).length).toBe(before);
  await other.stop();
  await free.close();
});
