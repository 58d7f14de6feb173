import { Client as ModernClient, StreamableHTTPClientTransport as ModernTransport } from '@modelcontextprotocol/client';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runDemoProvider, type DemoProvider } from '../../../src/program/demo/provider.ts';
import { runConformance } from '../../support/run-conformance.ts';

let demo: DemoProvider;
beforeAll(async () => {
  demo = await runDemoProvider({ roll: () => 4 });
});
afterAll(() => demo.close());

const INFO = { name: 'test', version: '1' };
const RESULT = {
  content: [{ type: 'text', text: '2d6: 4 + 4 = 8' }],
  structuredContent: { dice: '2d6', rolls: [4, 4], total: 8 },
};

/** The one SDK speaks the revisions with `initialize`, the other the newest. */
const CLIENTS = {
  'SDK v1': async () => {
    const client = new Client(INFO);
    const transport = new StreamableHTTPClientTransport(new URL(demo.toolsUrl));
    await client.connect(transport);
    expect(transport.sessionId).toBeUndefined();
    return client;
  },
  'SDK v2': async () => {
    const client = new ModernClient(INFO, { versionNegotiation: { mode: { pin: '2026-07-28' } } });
    await client.connect(new ModernTransport(new URL(demo.toolsUrl)));
    return client as unknown as Client;
  },
};

describe.each(Object.entries(CLIENTS))('%s', (_name, connect) => {
  it('lists the tools and calls them', async () => {
    const client = await connect();
    expect(client.getServerVersion()).toMatchObject({ name: 'demo-tools' });
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(['roll_dice', 'tell_time', 'weigh_words']);
    expect(await client.callTool({ name: 'roll_dice', arguments: { dice: '2d6' } })).toMatchObject(RESULT);
    expect(await client.callTool({ name: 'roll_dice', arguments: { dice: '0d6' } })).toMatchObject({ isError: true });
    await expect(client.callTool({ name: 'no_such', arguments: {} })).rejects.toMatchObject({ code: -32602 });
    await client.close();
  });
});

it('a call with nothing around it is answered', async () => {
  const body = {
    jsonrpc: '2.0',
    id: 'a',
    method: 'tools/call',
    params: { name: 'roll_dice', arguments: { dice: '2d6' } },
  };
  const response = await fetch(demo.toolsUrl, { method: 'POST', body: JSON.stringify(body) });
  expect(await response.json()).toEqual({ jsonrpc: '2.0', id: 'a', result: RESULT });
});

/**
 * What the judge misses of tools that are only in its own fixture, and of prompts and resources, which are no part
 * of the tools; and that it so fails.
 */
const NOT_HERE =
  /^(?:Not testable: server does not list the diagnostic tool|(?:prompts|resources)\/\S+ returned JSON-RPC error -32601|the tool ended)/;

it.each([
  ['2025-11-25', ['server-initialize', 'ping', 'tools-list', 'dns-rebinding-protection']],
  ['2026-07-28', ['server-stateless', 'tools-list', 'http-header-validation', 'caching', 'dns-rebinding-protection']],
] as const)(
  'passes the conformance scenarios of %s for what it has',
  async (requirements, scenarios: readonly string[]) => {
    // All that the revision asks for, in one process: one for each scenario takes a second of the processor.
    const { scenarios: all } = await runConformance({
      url: demo.toolsUrl,
      requirements,
      mayFail: ({ name }) => !scenarios.includes(name),
    });
    const judged = all.filter(({ name }) => scenarios.includes(name));
    expect(judged).toHaveLength(scenarios.length);
    const faults = judged.flatMap(({ checks }) =>
      checks.filter(({ status, errorMessage = '' }) => status === 'FAILURE' && !NOT_HERE.test(errorMessage)),
    );
    expect(faults).toEqual([]);
    for (const { checks } of judged) expect(checks.filter(({ status }) => status === 'SUCCESS')).not.toEqual([]);
  },
  120_000,
);
