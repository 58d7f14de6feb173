import * as sdkV2 from '@modelcontextprotocol/client';
import { createMCPClient } from '@ai-sdk/mcp';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { auth } from '@modelcontextprotocol/sdk/client/auth.js';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startMcpFixture, type McpFixture } from '../../support/mcp-fixture.ts';
import { startSpine, type Spine } from '../../support/spine.ts';
import { toolBlock } from '../../mcp/conformance/tool-block.ts';
import { createClientMemory, type ClientMemory, CALLBACK } from './support/client-memory.ts';
import { endGrant, grantsOf } from './support/grants.ts';
import { A_BUDGET, createPerson } from './support/person.ts';

/*
 * Unmodified MCP clients, none with a key: they find the authorization server, register, get tokens, call a tool,
 * refresh, and are refused once the person takes the grant away. Programs with a process of their own are in
 * programs-sign-in.test.ts.
 */

let fixture: McpFixture;
let spine: Spine;
/** By how much the clock of the gateway is ahead. Those of the clients are not. */
let ahead = 0;
beforeAll(async () => {
  fixture = await startMcpFixture();
  spine = await startSpine({
    mode: 'development',
    toml: toolBlock('acme/tools', fixture.url),
    now: () => Date.now() + ahead,
  });
});
afterAll(async () => {
  await spine.stop();
  await fixture.close();
});

/** A client that calls the tool by its last name, and says what it answered. Rejects if it has to sign in. */
interface McpClient {
  call(url: string, memory: ClientMemory): Promise<string>;
  /** Redeems the answer of the person. */
  finish(url: string, memory: ClientMemory, answer: URLSearchParams): Promise<unknown>;
}

const INFO = { name: 'test', version: '1.0.0' };
const textOf = (result: unknown) =>
  (result as { readonly content: readonly { readonly text: string }[] }).content[0]!.text;
const nameAmong = (names: readonly string[]) => names.find((name) => name.endsWith('test_simple_text'))!;

const CLIENTS: Readonly<Record<string, McpClient>> = {
  'SDK 1': {
    async call(url, { provider }) {
      const client = new Client(INFO);
      try {
        await client.connect(new StreamableHTTPClientTransport(new URL(url), { authProvider: provider }));
        const { tools } = await client.listTools();
        return textOf(await client.callTool({ name: nameAmong(tools.map(({ name }) => name)), arguments: {} }));
      } finally {
        await client.close();
      }
    },
    finish: (url, { provider }, answer) =>
      new StreamableHTTPClientTransport(new URL(url), { authProvider: provider }).finishAuth(answer.get('code')!),
  },
  'SDK 2': {
    async call(url, { provider }) {
      const client = new sdkV2.Client(INFO, { versionNegotiation: { mode: 'auto' } });
      try {
        await client.connect(new sdkV2.StreamableHTTPClientTransport(new URL(url), { authProvider: provider }));
        const { tools } = await client.listTools();
        return textOf(await client.callTool({ name: nameAmong(tools.map(({ name }) => name)), arguments: {} }));
      } finally {
        await client.close();
      }
    },
    finish: (url, { provider }, answer) =>
      new sdkV2.StreamableHTTPClientTransport(new URL(url), { authProvider: provider }).finishAuth(answer),
  },
  'AI SDK': {
    async call(url, { provider }) {
      const client = await createMCPClient({ transport: { type: 'http', url, authProvider: provider } });
      try {
        const tools = await client.tools();
        const tool = tools[nameAmong(Object.keys(tools))]!;
        return textOf(await tool.execute({}, { toolCallId: 'one', messages: [], context: {} }));
      } finally {
        await client.close();
      }
    },
    // Its transport cannot finish a sign-in, and its users call this function, which the SDKs have too.
    finish: (url, { provider }, answer) => auth(provider, { serverUrl: url, authorizationCode: answer.get('code')! }),
  },
};

test.for(
  Object.entries(CLIENTS).flatMap(([name, client]) =>
    ['/mcp', '/mcp/acme/tools'].map((path) => ({ name: `${name} at ${path}`, client, path })),
  ),
)('a client signs in, calls, refreshes, and is refused in the end: $name', async ({ client, path }) => {
  const url = spine.origin + path;
  const memory = createClientMemory();
  const person = createPerson(spine.origin, spine.key);
  const answered = 'This is a simple text response for testing.';
  await expect(client.call(url, memory)).rejects.toThrow(/unauthorized/i);

  const page = await person.open(memory.opened().href);
  expect(page.pathname).toMatch(/^\/authorize\/[\w-]+$/);
  expect(await (await person.look(page)).json()).toMatchObject({
    data: { name: 'Test client', document: null, sends_to: null, resources: [url] },
  });
  const answer = await person.allow(page);
  expect(answer.origin + answer.pathname).toBe(CALLBACK);
  expect(answer.searchParams.get('iss')).toBe(spine.origin);
  expect(answer.searchParams.get('state')).toBe('a-state');
  await client.finish(url, memory, answer.searchParams);
  const first = memory.tokens();
  expect(first).toMatchObject({ token_type: 'Bearer', scope: 'call' });
  expect(await client.call(url, memory)).toBe(answered);

  // The client still believes in its token, and learns by the 401 that it has expired.
  ahead += first.expires_in * 1_000;
  const opened = memory.opened();
  expect(await client.call(url, memory)).toBe(answered);
  const second = memory.tokens();
  expect(second.access_token).not.toBe(first.access_token);
  expect(second.refresh_token).not.toBe(first.refresh_token);
  expect(memory.opened()).toBe(opened);

  const grant = (await grantsOf(spine)).at(-1)!;
  expect(grant).toMatchObject({
    name: 'Test client',
    client: 'a program on your machine',
    limit: A_BUDGET.limit,
    limit_reset: 'monthly',
    expires_at: A_BUDGET.expires_at,
    usage: 0.002,
  });
  await spine.quiet();
  const { available } = await spine.balance();
  await endGrant(spine, grant);
  await expect(client.call(url, memory)).rejects.toThrow(/unauthorized/i);
  // It asks the person again.
  expect(memory.opened()).not.toBe(opened);
  expect((await spine.balance()).available).toBe(available);
  expect(await spine.faults()).toEqual([]);
});
