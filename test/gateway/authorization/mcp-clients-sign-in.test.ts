import * as sdkV2 from '@modelcontextprotocol/client';
import { UnauthorizedError } from '@modelcontextprotocol/sdk/client/auth.js';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startMcpFixture, type McpFixture } from '../../support/mcp-fixture.ts';
import { startSpine, type Spine } from '../../support/spine.ts';
import { toolBlock } from '../../mcp/conformance/tool-block.ts';
import { CALLBACK, createClientMemory, type ClientMemory } from './support/client-memory.ts';
import { A_BUDGET, createPerson } from './support/person.ts';

/* Unmodified MCP clients, none with a key: they find the authorization server, register and get tokens. */

let fixture: McpFixture;
let spine: Spine;
beforeAll(async () => {
  fixture = await startMcpFixture();
  spine = await startSpine({ mode: 'development', toml: toolBlock('acme/tools', fixture.url) });
});
afterAll(async () => {
  await spine.stop();
  await fixture.close();
});

const SDKS = {
  'SDK 1': {
    connect: async (url: string, { provider }: ClientMemory) => {
      const transport = new StreamableHTTPClientTransport(new URL(url), { authProvider: provider });
      const client = new Client({ name: 'one', version: '1.0.0' });
      return {
        client,
        connected: client.connect(transport),
        finish: (answer: URLSearchParams) => transport.finishAuth(answer.get('code')!),
      };
    },
    isUnauthorized: (error: unknown) => error instanceof UnauthorizedError,
  },
  'SDK 2': {
    connect: async (url: string, { provider }: ClientMemory) => {
      const transport = new sdkV2.StreamableHTTPClientTransport(new URL(url), { authProvider: provider });
      const client = new sdkV2.Client({ name: 'two', version: '1.0.0' });
      return {
        client,
        connected: client.connect(transport),
        finish: (answer: URLSearchParams) => transport.finishAuth(answer),
      };
    },
    isUnauthorized: (error: unknown) => error instanceof sdkV2.UnauthorizedError,
  },
};

test.for(
  Object.entries(SDKS).flatMap(([name, sdk]) =>
    ['/mcp', '/mcp/acme/tools'].map((path) => ({ name: `${name} at ${path}`, sdk, path })),
  ),
)('a client signs in and calls a tool, and the call is paid from its budget: $name', async ({ sdk, path }) => {
  const memory = createClientMemory();
  const person = createPerson(spine.origin, spine.key);
  const first = await sdk.connect(spine.origin + path, memory);
  await expect(first.connected).rejects.toSatisfy(sdk.isUnauthorized);

  const page = await person.open(memory.opened().href);
  expect(page.pathname).toMatch(/^\/authorize\/[\w-]+$/);
  expect(await (await person.look(page)).json()).toMatchObject({
    data: { name: 'Test client', document: null, sends_to: null, resources: [spine.origin + path] },
  });
  const answer = await person.allow(page);
  expect(answer.origin + answer.pathname).toBe(CALLBACK);
  expect(answer.searchParams.get('iss')).toBe(spine.origin);
  expect(answer.searchParams.get('state')).toBe('a-state');
  await first.finish(answer.searchParams);
  expect(memory.tokens()).toMatchObject({ token_type: 'Bearer', scope: 'call' });

  const { client, connected } = await sdk.connect(spine.origin + path, memory);
  await connected;
  const { tools } = await client.listTools();
  const tool = tools.find(({ name }) => name.endsWith('test_simple_text'))!;
  expect(await client.callTool({ name: tool.name, arguments: {} })).toMatchObject({ content: [{ type: 'text' }] });
  await client.close();

  const { data: keys } = (await (await spine.get('/keys')).json()) as {
    readonly data: readonly Record<string, unknown>[];
  };
  const grant = keys.findLast(({ name }) => name === 'Test client')!;
  expect(grant).toMatchObject({
    client: 'a program on your machine',
    limit: A_BUDGET.limit,
    limit_reset: 'monthly',
    expires_at: A_BUDGET.expires_at,
    usage: 0.001,
  });
  expect(await spine.faults()).toEqual([]);
});
