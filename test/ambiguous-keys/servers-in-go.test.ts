import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { agentBlock } from '../support/a2a-agent/index.ts';
import { startAsGo } from '../support/go-server/as-go.ts';
import { startGoServer, type GoServer, type Obeyed } from '../support/go-server/start.ts';
import { startSpine, UNHURRIED, type Spine } from '../support/spine.ts';

/*
 * A provider that is written in Go with plain structs obeys members that the gateway did not price. The same
 * requests go to it directly, where it does, and through the gateway, where it never sees one.
 */

const BUILD_MS = 300_000;
let go: GoServer;
let spine: Spine;

beforeAll(async () => {
  go = await startGoServer();
  const services = `
[[tools]]
name = "go/tools"
provider_name = "Go"
endpoint = "${go.url}/mcp"
[tools.pricing]
per_call = 0.001
tools = { dear = 5 }
[[models]]
name = "go/model"
provider_name = "Go"
context_length = 100000
max_output_tokens = 50000
[models.pricing]
prompt = 1
completion = 10
[models.params]
model = "small"
api_base = "${go.url}/v1"
api_key = "k"
${agentBlock({ name: 'go/agent', provider: 'Go', endpoint: `${go.url}/agent` })}`;
  spine = await startSpine({ toml: `${UNHURRIED}${services}` });
}, BUILD_MS);
afterAll(async () => {
  await spine.stop();
  await go.close();
});

interface Trick {
  readonly what: string;
  readonly own: string;
  readonly door: string;
  readonly body: string;
  /** What the server does that nobody pays for. */
  readonly harm: (obeyed: Obeyed) => boolean;
  readonly headers?: Readonly<Record<string, string>>;
}

const chat = (more: string): Pick<Trick, 'own' | 'door' | 'body'> => ({
  own: '/v1/chat/completions',
  door: '/api/v1/chat/completions',
  body: `{"model":"go/model","messages":[{"role":"user","content":"hi"}],"max_tokens":10,${more}}`,
});
const tool = (body: string): Pick<Trick, 'own' | 'door' | 'body'> => ({ own: '/mcp', door: '/mcp/go/tools', body });
const agent = (more: string): Pick<Trick, 'own' | 'door' | 'body' | 'headers'> => ({
  own: '/agent',
  door: '/a2a/go/agent',
  headers: { 'a2a-version': '0.3' },
  body: `{"jsonrpc":"2.0","id":1,"method":"message/send","params":{"message":{"kind":"message","messageId":"m","role":"user","parts":[{"kind":"text","text":"hi"}],${more}}}}`,
});
const ranDear = ({ tools }: Obeyed) => tools.includes('dear');

const TRICKS: readonly Trick[] = [
  ...['METHOD', 'Method', 'methoD'].map((method) => ({
    what: `${method} beside a free method`,
    ...tool(
      `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{},"${method}":"tools/call","PARAMS":{"name":"dear"}}`,
    ),
    harm: ranDear,
  })),
  {
    what: 'param\u017f beside params',
    ...tool(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"cheap"},"param\u017f":{"name":"dear"}}`),
    harm: ranDear,
  },
  {
    what: 'Name',
    ...tool(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"cheap","Name":"dear"}}`),
    harm: ranDear,
  },
  {
    what: 'an escaped N',
    ...tool(String.raw`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"cheap","\u004eame":"dear"}}`),
    harm: ranDear,
  },
  {
    what: 'Max_Tokens',
    ...chat('"Max_Tokens":100000'),
    harm: (obeyed) => obeyed.chat.some(({ max_tokens: most }) => most === 100_000),
  },
  {
    what: 'max_to\u212aens',
    ...chat('"max_to\u212aens":100000'),
    harm: (obeyed) => obeyed.chat.some(({ max_tokens: most }) => most === 100_000),
  },
  { what: 'N', ...chat('"N":64'), harm: (obeyed) => obeyed.chat.some(({ n }) => n === 64) },
  { what: 'Model', ...chat('"Model":"large"'), harm: (obeyed) => obeyed.chat.some(({ model }) => model === 'large') },
  { what: '\u017ftream', ...chat('"\u017ftream":true'), harm: (obeyed) => obeyed.chat.some(({ stream }) => stream) },
  {
    what: 'TaskID',
    ...agent('"TaskID":"stolen"'),
    harm: ({ sends }) => sends.some(({ taskId }) => taskId === 'stolen'),
  },
  {
    what: 'ta\u017f\u212aId',
    ...agent('"ta\u017f\u212aId":"stolen"'),
    harm: ({ sends }) => sends.some(({ taskId }) => taskId === 'stolen'),
  },
  {
    what: 'ContextId',
    ...agent('"ContextId":"stolen"'),
    harm: ({ sends }) => sends.some(({ contextId }) => contextId === 'stolen'),
  },
];

const post = async (url: string, { body, headers = {} }: Trick, key = '') =>
  fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${key}`, ...headers },
    body,
  });

const newSince = (before: Obeyed, after: Obeyed): Obeyed => ({
  chat: after.chat.slice(before.chat.length),
  tools: after.tools.slice(before.tools.length),
  sends: after.sends.slice(before.sends.length),
});

test('the server obeys such members when it gets them', async () => {
  const twin = await startAsGo();
  onTestFinished(() => twin.close());
  const twinObeyed = async () => (await (await fetch(`${twin.url}/obeyed`)).json()) as Obeyed;
  for (const trick of TRICKS) {
    const [before, twinBefore] = [await go.obeyed(), await twinObeyed()];
    expect((await post(go.url + trick.own, trick)).status, trick.what).toBe(200);
    await post(twin.url + trick.own, trick);
    const obeyed = newSince(before, await go.obeyed());
    expect(trick.harm(obeyed), trick.what).toBe(true);
    // What is written down of the rules of Go is what Go does.
    expect(newSince(twinBefore, await twinObeyed()), trick.what).toEqual(obeyed);
  }
});

test('through the gateway it never sees one, whether the account has money or none', async () => {
  const poor = await spine.tenant('poor', '0');
  const before = await go.obeyed();
  for (const trick of TRICKS) {
    for (const key of [spine.key, poor.key]) {
      const reply = await post(spine.origin + trick.door, trick, key);
      expect(reply.status, trick.what).toBe(trick.own === '/agent' ? 200 : 400);
      expect(await reply.text(), trick.what).toContain('must be written');
    }
  }
  expect(newSince(before, await go.obeyed())).toEqual({ chat: [], tools: [], sends: [] });
  expect((await spine.balance()).available).toBe(100_000_000n);
  expect(await spine.faults()).toEqual([]);
});

test('in a session such messages are refused as well, notifications and responses too', async () => {
  const url = `${spine.origin}/mcp/go/tools`;
  const headers = {
    'content-type': 'application/json',
    authorization: `Bearer ${spine.key}`,
    accept: 'application/json, text/event-stream',
  };
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 't', version: '1' } };
  const opened = await fetch(url, {
    method: 'POST',
    headers,
    body: JSON.stringify({ jsonrpc: '2.0', id: 0, method: 'initialize', params }),
  });
  expect(opened.status, await opened.text()).toBe(200);
  const session = { ...headers, 'mcp-session-id': opened.headers.get('mcp-session-id')! };
  const before = await go.obeyed();
  const beside = '"METHOD":"tools/call","PARAMS":{"name":"dear"}';
  const messages = [
    '{"jsonrpc":"2.0","id":1,"method":"tools/list",%}',
    '{"jsonrpc":"2.0","id":2,"method":"logging/setLevel","params":{"level":"info"},%}',
    '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1},%}',
    '{"jsonrpc":"2.0","method":"notifications/roots/list_changed",%}',
    '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9},%}',
    '{"jsonrpc":"2.0","id":3,"result":{},%}',
    '[{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1},%}]',
  ];
  for (const message of messages) {
    const reply = await fetch(url, { method: 'POST', headers: session, body: message.replace('%', beside) });
    expect(await reply.text(), message).toContain('must be written method');
  }
  expect(await go.obeyed()).toEqual(before);
  expect(await spine.faults()).toEqual([]);
});
