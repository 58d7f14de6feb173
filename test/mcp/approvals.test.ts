import { Client as ModernClient, StreamableHTTPClientTransport as ModernTransport } from '@modelcontextprotocol/client';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { afterAll, afterEach, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest';
import { startMcpFixture, type McpFixture } from '../support/mcp-fixture.ts';
import { type AggregateSpine, startAggregateSpine, textOf } from './aggregate/aggregate-spine.ts';

// A call above the price of its key, as the SDKs' clients see it: the question to open a URL, or an error with it.

let fixture: McpFixture;
let spine: AggregateSpine;
let key: string;
let full: string;
beforeAll(async () => {
  fixture = await startMcpFixture();
});
beforeEach(async () => {
  spine = await startAggregateSpine(
    { 'acme/all': fixture.url },
    { env: { TOLLGATE_PUBLIC_URL: 'https://gateway.example' } },
  );
  const made = await spine.tenant('asking', '1', { askAbove: 999n });
  key = made.key;
  full = (await spine.app.keys.create({ account: made.account, label: 'full', kind: 'live' }))!.text;
});
afterEach(async () => {
  expect(await spine.faults()).toEqual([]);
});
afterAll(() => fixture.close());

const INFO = { name: 'test', version: '1' };
const requestInit = () => ({ headers: { authorization: `Bearer ${key}` } });

async function connectV1(url: string, elicitation: { url?: object }): Promise<Client> {
  const client = new Client(INFO, { capabilities: { elicitation } });
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: requestInit() }));
  onTestFinished(() => client.close());
  return client;
}

async function connectV2(url: string, open: (asked: string) => Promise<'accept' | 'decline'>): Promise<ModernClient> {
  const client = new ModernClient(INFO, {
    capabilities: { elicitation: { url: {} } },
    versionNegotiation: { mode: 'auto' },
  });
  client.setRequestHandler('elicitation/create', async ({ params }) => ({
    action: await open((params as unknown as { url: string }).url),
  }));
  await client.connect(new ModernTransport(new URL(url), { requestInit: requestInit() }));
  onTestFinished(() => client.close());
  return client;
}

const decide = (url: string, decision: string) =>
  fetch(`${spine.url}/approvals/${new URL(url).searchParams.get('id')!}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${full}`, 'content-type': 'application/json' },
    body: JSON.stringify({ decision }),
  });
const doors = () => [
  { url: spine.mcp, name: 'acme_all__test_simple_text' },
  { url: `${spine.mcp}/acme/all`, name: 'test_simple_text' },
];

test('a client of 2025-11-25 is told to open a URL, and then repeats its request', async () => {
  for (const { url, name } of doors()) {
    const client = await connectV1(url, { url: {} });
    const call = () => client.callTool({ name, arguments: { door: url } });
    const error = (await call().catch((thrown: unknown) => thrown)) as {
      code: number;
      data: { elicitations: { url: string; mode: string; elicitationId: string; message: string }[] };
    };
    expect(error).toMatchObject({
      code: -32042,
      data: {
        elicitations: [
          { mode: 'url', url: expect.stringContaining('https://gateway.example/dashboard/approvals?id=') },
        ],
      },
    });
    const [elicitation] = error.data.elicitations;
    expect((await decide(elicitation!.url, 'accept')).status).toBe(200);
    expect(textOf(await call())).toContain('simple text');
    await expect(call()).rejects.toMatchObject({ code: -32042 });
  }
});

test('a client of 2026-07-28 opens the URL, and its call goes on once it is accepted', async () => {
  for (const { url, name } of doors()) {
    const opened: string[] = [];
    const client = await connectV2(url, async (asked) => {
      opened.push(asked);
      // A person needs longer than the client.
      setTimeout(() => void decide(asked, 'accept'), 500);
      return 'accept';
    });
    expect(textOf(await client.callTool({ name, arguments: { door: url } }))).toContain('simple text');
    expect(opened).toHaveLength(1);
  }
});

test('whoever refuses, or opens no URL, is told so in the error', async () => {
  const [{ url, name }] = doors() as [{ url: string; name: string }];
  const declining = await connectV2(url, async () => 'decline');
  await expect(declining.callTool({ name, arguments: {} })).rejects.toThrow(
    /approval_required.*https:\/\/gateway\.example\/dashboard\/approvals\?id=apr_/,
  );
  const refusing = await connectV2(url, async (asked) => {
    await decide(asked, 'refuse');
    return 'accept';
  });
  await expect(refusing.callTool({ name, arguments: {} })).rejects.toThrow(/A person has refused this call/);
  const old = await connectV1(url, {});
  await expect(old.callTool({ name, arguments: { old: true } })).rejects.toMatchObject({
    code: -32012,
    data: { type: 'approval_required', approval: { highest_cost_usd: '0.001', service: 'acme/all' } },
  });
});
