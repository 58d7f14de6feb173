import { Client as ModernClient, StreamableHTTPClientTransport as ModernTransport } from '@modelcontextprotocol/client';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { escrowOf } from '#billing';
import { startPeerProvider, type PeerProvider } from '../peers/peer-provider.ts';
import { PEER } from '../peers/routes.ts';
import { peerServices } from '../peers/services.ts';
import { startSpine, UNHURRIED, type Spine } from '../support/spine.ts';

// An agent, a model and a tool above the price of a key, called as tools by the SDKs' clients of each revision: the
// question to open a URL, or the error with it, and then one paid call.

let provider: PeerProvider;
let spine: Spine;
let account: string;
let key: string;
let full: string;
beforeAll(async () => {
  provider = await startPeerProvider();
  spine = await startSpine({
    toml: UNHURRIED + peerServices(provider),
    env: { TOLLGATE_PUBLIC_URL: 'https://gateway.example' },
  });
  ({ account, key } = await spine.tenant('asking', '10', { askAbove: 100n }));
  full = (await spine.app.keys.create({ account, label: 'full', kind: 'live' }))!.text;
});
afterAll(async () => {
  expect(await spine.faults()).toEqual([]);
  await spine.stop();
  await provider.close();
});

const TOKENS = 5_000;
const TOOLS = [
  { what: 'a tool', path: `/mcp/${PEER}`, name: 'do', args: (text: string) => ({ text }) },
  {
    what: 'a model',
    path: `/mcp/model/${PEER}`,
    name: 'chat',
    args: (text: string) => ({ prompt: text, max_tokens: TOKENS }),
  },
  { what: 'an agent', path: `/mcp/a2a/${PEER}`, name: 'send_message', args: (text: string) => ({ message: text }) },
  {
    what: 'a model by the tool of all',
    path: '/mcp',
    name: 'ask_model',
    args: (text: string) => ({ model: PEER, prompt: text, max_tokens: TOKENS }),
  },
  {
    what: 'an agent by the tool of all',
    path: '/mcp',
    name: 'ask_agent',
    args: (text: string) => ({ agent: PEER, message: text }),
  },
] as const;

const INFO = { name: 'test', version: '1' };
const decide = async (page: string, decision: string) => {
  const id = new URL(page).searchParams.get('id')!;
  const response = await fetch(`${spine.url}/approvals/${id}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${full}`, 'content-type': 'application/json' },
    body: JSON.stringify({ decision }),
  });
  expect(response.status).toBe(200);
};
const money = async () => {
  await spine.quiet();
  return (await spine.app.ledger.balance(escrowOf(account)))!.available;
};
const PAGE = /^https:\/\/gateway\.example\/dashboard\/approvals\?id=apr_/;

async function connectLegacy(path: string, elicitation: { url?: object } | null): Promise<Client> {
  const client = new Client(INFO, { capabilities: elicitation === null ? {} : { elicitation } });
  const requestInit = { headers: { authorization: `Bearer ${key}` } };
  await client.connect(new StreamableHTTPClientTransport(new URL(spine.origin + path), { requestInit }));
  return client;
}

let calls = 0;
describe.each(TOOLS)('$what', ({ path, name, args }) => {
  /** Another one for each test, because the same request waits for the same decision. */
  const someArgs = () => args(`complete ${(calls += 1)}`);

  test.each([
    ['2025-11-25, which opens a URL', { url: {} }, -32042],
    ['2025-11-25, which opens none', {}, -32012],
    ['a client without elicitation', null, -32012],
  ] as const)('%s: the error has the link, and the repeat has the result', async (_who, elicitation, code) => {
    const client = await connectLegacy(path, elicitation);
    const given = someArgs();
    const call = (changes: object = {}) => client.callTool({ name, arguments: { ...given, ...changes } });
    const [before, asked] = [await money(), provider.calls()];
    const error = (await call().catch((thrown: unknown) => thrown)) as {
      readonly code: number;
      readonly data: {
        readonly elicitations?: readonly { readonly url: string; readonly mode: string }[];
        readonly approval?: { readonly url: string };
      };
    };
    expect(error.code).toBe(code);
    // The SDK keeps of the first one what the revision defines.
    const { elicitations = [], approval } = error.data;
    if (code === -32042) expect(elicitations).toMatchObject([{ mode: 'url' }]);
    const { url: page } = elicitations[0] ?? approval!;
    expect(page).toMatch(PAGE);
    expect([await money(), provider.calls()]).toEqual([before, asked]);

    await decide(page, 'accept');
    // Other arguments are another call.
    await expect(client.callTool({ name, arguments: someArgs() })).rejects.toMatchObject({ code });
    const { content, isError } = await call();
    expect(isError ?? false).toBe(false);
    expect((content as readonly { readonly text: string }[])[0]!.text).toContain('did complete');
    expect(before - (await money())).toBe(1_000n);
    await expect(call()).rejects.toMatchObject({ code });
    expect(before - (await money())).toBe(1_000n);
    await client.close();
  });

  test('2026-07-28: the result asks for input, and the call goes on once it is accepted', async () => {
    const opened: string[] = [];
    const client = new ModernClient(INFO, {
      capabilities: { elicitation: { url: {} } },
      versionNegotiation: { mode: 'auto' },
    });
    let decision = 'accept';
    client.setRequestHandler('elicitation/create', async ({ params }) => {
      const { url } = params as unknown as { readonly url: string };
      opened.push(url);
      await decide(url, decision);
      return { action: 'accept' };
    });
    const requestInit = { headers: { authorization: `Bearer ${key}` } };
    await client.connect(new ModernTransport(new URL(spine.origin + path), { requestInit }));
    const before = await money();
    const { content } = await client.callTool({ name, arguments: someArgs() });
    expect((content as readonly { readonly text: string }[])[0]!.text).toContain('did complete');
    expect(opened).toEqual([expect.stringMatching(PAGE)]);
    expect(before - (await money())).toBe(1_000n);

    decision = 'refuse';
    await expect(client.callTool({ name, arguments: someArgs() })).rejects.toThrow(/A person has refused this call/);
    expect(before - (await money())).toBe(1_000n);
    await client.close();
  });
});
