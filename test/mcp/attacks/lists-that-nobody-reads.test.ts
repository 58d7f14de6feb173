import { Client as OldClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as OldTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { startRawMcp, type RawMcp } from '../../support/raw-mcp.ts';
import { startSpine, type Spine } from '../../support/spine.ts';
import { callTool, modernPost, toolToml } from '../calls/modern-post.ts';

const GOOD = '{"name":"good","inputSchema":{"type":"object"}}';
const TOOLS = [
  GOOD,
  '{"name":"odd","inputSchema":{"type":"objekt"}}',
  '{"name":"nulls","inputSchema":{"type":"object","required":null},"description":null,"annotations":null}',
  '{"name":"none"}',
  '{"name":"numbers","inputSchema":{"type":"object"},"outputSchema":{"type":["null","array"]}}',
];
const RESULTS: Readonly<Record<string, string>> = {
  good: '{"content":[{"type":"text","text":"x","n":12345678901234567890}],"resultType":"complete"}',
  nulls: '{"content":null,"isError":null,"structuredContent":{"a":1.0},"resultType":"complete"}',
  none: '{"content":[{"text":"x"}],"resultType":"complete"}',
};

let odd: RawMcp;
let plain: RawMcp;
let spine: Spine;
beforeAll(async () => {
  const list = (tools: readonly string[]) =>
    `{"tools":[${tools.join()}],"resultType":"complete","ttlMs":0,"cacheScope":"private"}`;
  odd = await startRawMcp(
    ({ method, params }) => (method === 'tools/list' ? list(TOOLS) : RESULTS[String(params['name'])]!),
    TOOLS,
  );
  plain = await startRawMcp(({ method }) => (method === 'tools/list' ? list([GOOD]) : RESULTS['good']!), [GOOD]);
  spine = await startSpine({
    toml: `${toolToml({ name: 'odd', url: odd.url })}${toolToml({ name: 'plain', url: plain.url, provider: 'Other' })}`,
  });
  // The lists are read in the background, of both services.
  await vi.waitUntil(async () => (await names('/mcp')).length >= 5, { timeout: 60_000 });
});
afterAll(async () => {
  await spine.stop();
  await odd.close();
  await plain.close();
});

async function names(path: string): Promise<readonly string[]> {
  const { message } = await modernPost(spine, path, 'tools/list');
  return (message.result['tools'] as unknown as readonly { readonly name: string }[]).map(({ name }) => name);
}

const CLIENTS = {
  'sdk 1': () => ({ client: new OldClient({ name: 'c', version: '1' }) as unknown as Client, Transport: OldTransport }),
  'sdk 2, session': () => ({
    client: new Client({ name: 'c', version: '1' }),
    Transport: StreamableHTTPClientTransport,
  }),
  'sdk 2, 2026-07-28': () => ({
    client: new Client({ name: 'c', version: '1' }, { versionNegotiation: { mode: 'auto' } }),
    Transport: StreamableHTTPClientTransport,
  }),
} as const;

async function connect(name: keyof typeof CLIENTS, path: string): Promise<Client> {
  const { client, Transport } = CLIENTS[name]();
  const requestInit = { headers: { authorization: `Bearer ${spine.key}` } };
  await client.connect(new Transport(new URL(`${spine.origin}${path}`), { requestInit }));
  onTestFinished(() => client.close());
  return client;
}

describe.each(Object.keys(CLIENTS) as (keyof typeof CLIENTS)[])('%s', (name) => {
  test.each(['/mcp', '/mcp/odd', '/api/v1/mcp', '/mcp?services=odd,plain'])(
    'lists what can be read at %s',
    async (path) => {
      const client = await connect(name, path);
      const listed = (await client.listTools()).tools.map((tool) => tool.name.replace(/^odd__/, ''));
      expect(listed).toEqual(expect.arrayContaining(['good', 'nulls', 'none', 'numbers']));
      expect(listed).not.toContain('odd');
      if (!path.endsWith('/odd')) expect(listed).toContain('plain__good');
    },
  );

  test('reads a result with nulls, and gets an error for one that cannot be read', async () => {
    const client = await connect(name, '/mcp/odd');
    expect(await client.callTool({ name: 'nulls' })).toMatchObject({ content: [], structuredContent: { a: 1 } });
    await expect(client.callTool({ name: 'none' })).rejects.toThrow('content[0].type');
  });
});

test.each([
  ['odd', 'good', 1_000n],
  ['odd', 'nulls', 1_000n],
  ['odd', 'none', 0n],
  ['odd', 'odd', 0n],
] as const)('%s/%s costs %s', async (service, tool, micro) => {
  const before = (await spine.balance()).available;
  const asked = odd.asked.length;
  const { message } = await callTool(spine, service, tool);
  expect(before - (await spine.balance()).available).toBe(micro);
  expect(await spine.faults()).toEqual([]);
  if (tool === 'none') expect(message.error).toMatchObject({ code: -32_017 });
  // The server is not asked for a tool that is listed nowhere.
  if (tool === 'odd')
    expect(message.error).toMatchObject({ code: -32_602, message: expect.stringContaining('inputSchema.type') });
  expect(odd.asked.length - asked).toBe(tool === 'odd' ? 0 : 1);
});

test('the page of the service says what is left out, and of whose server', async () => {
  const { data } = (await (await fetch(`${spine.origin}/api/v1/tools?service=odd`)).json()) as {
    data: readonly { readonly left_out: unknown; readonly tools: readonly { readonly name: string }[] }[];
  };
  expect(data[0]!.left_out).toEqual([
    { provider: 'Tools', kind: 'tool', name: 'odd', reason: 'inputSchema.type must be "object"' },
  ]);
  expect(data[0]!.tools.map(({ name }) => name)).toEqual(['good', 'none', 'nulls', 'numbers']);
});
