import { verifyAgentCardSignature, type AgentCard } from '@a2a-js/sdk';
import { ClientFactory } from '@a2a-js/sdk/client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startMcpFixture, type McpFixture } from '../../support/mcp-fixture.ts';
import { startAgentSpine, type AgentSpine } from '../../support/a2a-agent/index.ts';
import { MODEL, type Spine } from '../../support/spine.ts';
import { CLIENT_KINDS, collect, connect, fetchWithKey, isTask, saying, textOf } from './sdk-client.ts';

/** A client of A2A begins with a card, also where what it calls is a model or a tool. */

let world: AgentSpine;
let spine: Spine;
let tools: McpFixture;
beforeAll(async () => {
  tools = await startMcpFixture();
  const tool = `
[[tools]]
name = "test/tools"
display_name = "Test: Tools"
provider_name = "Test"
endpoint = "${tools.url}"
[tools.pricing]
per_call = 0.002
`;
  world = await startAgentSpine(tool);
  ({ spine } = world);
});
afterAll(async () => {
  expect(await spine.faults()).toEqual([]);
  await world.close();
  await tools.close();
});

const cardOf = async (path: string, version: string | null = '1.0') => {
  const reply = await fetch(`${spine.origin}${path}`, { headers: version === null ? {} : { 'a2a-version': version } });
  return { status: reply.status, card: (await reply.json()) as AgentCard & Record<string, unknown> };
};

test.each(CLIENT_KINDS)('the official client calls a model by its address alone: %s', async (kind) => {
  const client = await connect(kind, `${spine.origin}/a2a/model/${MODEL}`, spine.key);
  const answer = await client.sendMessage(saying('hello'));
  expect(isTask(answer)).toBe(false);
  expect(textOf(answer as never)).not.toBe('');
  const events = await collect(client.sendMessageStream(saying('hello')));
  expect(events.length).toBeGreaterThan(1);
});

test.each(CLIENT_KINDS)('and a tool: %s', async (kind) => {
  const client = await connect(kind, `${spine.origin}/a2a/mcp/test/tools/test_simple_text`, spine.key);
  const answer = await client.sendMessage(saying('{}'));
  expect(textOf(answer as never)).toContain('simple text');
});

test('the card says what it is, what it costs and where it is called, in both versions', async () => {
  const { card } = await cardOf(`/a2a/model/${MODEL}/.well-known/agent-card.json`);
  const url = `${spine.origin}/a2a/model/${MODEL}`;
  expect(card).toMatchObject({
    skills: [{ id: MODEL, tags: ['model'] }],
    capabilities: {
      streaming: true,
      pushNotifications: false,
      extensions: [
        {
          uri: 'urn:tollgate:pricing',
          params: { currency: 'USD', per_1m_prompt_tokens_usd: '1', per_1m_completion_tokens_usd: '2' },
        },
      ],
    },
  });
  expect(card.supportedInterfaces.map((one) => one.url)).toEqual([url, url, url, url]);
  const tool = await cardOf('/a2a/mcp/test/tools/test_simple_text/.well-known/agent.json', null);
  expect(tool.card).toMatchObject({
    url: `${spine.origin}/a2a/mcp/test/tools/test_simple_text`,
    protocolVersion: '0.3',
    skills: [{ id: 'test/tools/test_simple_text', tags: ['tool'] }],
    capabilities: { extensions: [{ params: { per_call_usd: '0.002' } }] },
  });
  expect((await cardOf(`/api/v1/a2a/model/${MODEL}/.well-known/agent-card.json`)).card).toMatchObject({
    name: card.name,
  });
});

test.each([
  ['1.0', 'GetExtendedAgentCard', -32004],
  ['0.3', 'agent/getAuthenticatedExtendedCard', -32007],
])('in %s a model has no extended card, and is not said to be missing', async (version, method, code) => {
  const reply = await fetchWithKey(spine.key)(`${spine.origin}/a2a/model/${MODEL}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'a2a-version': version },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: {} }),
  });
  expect(await reply.json()).toMatchObject({
    error: { code, message: `model/${MODEL} has no extended agent card` },
  });
});

test('an address without its slash is answered with the one that is meant', async () => {
  const { status, card } = await cardOf('/a2a/model/test/.well-known/agent-card.json');
  expect(status).toBe(404);
  expect(JSON.stringify(card)).toContain(`end the address with a slash, such as ${spine.origin}/a2a/model/${MODEL}/`);
  const factory = new ClientFactory();
  await expect(factory.createFromUrl(`${spine.origin}/a2a/model/${MODEL}`)).rejects.toThrow();
  expect((await cardOf('/a2a/model/no/such/.well-known/agent-card.json')).status).toBe(404);
});

test('the cards of all addresses of the gateway, and of the version that is asked for in the address', async () => {
  for (const path of [
    '/.well-known/agent-card.json',
    '/a2a/.well-known/agent-card.json',
    '/api/v1/a2a/.well-known/agent.json',
    '/api/v1/.well-known/agent-card.json',
  ]) {
    const { status, card } = await cardOf(path, null);
    expect([status, card['url']]).toEqual([200, `${spine.origin}/a2a`]);
    const modern = await cardOf(`${path}?A2A-Version=1.0`, null);
    expect([modern.status, 'url' in modern.card]).toEqual([200, false]);
  }
});

test('the card is signed, and says since when it is so', async () => {
  const reply = await fetch(`${spine.origin}/a2a/model/${MODEL}/.well-known/agent-card.json`, {
    headers: { 'a2a-version': '1.0' },
  });
  expect(Date.parse(reply.headers.get('last-modified')!)).toBeLessThanOrEqual(Date.now());
  const verify = verifyAgentCardSignature(async (kid, jku) => {
    const { keys } = (await (await fetch(jku!)).json()) as { keys: { kid: string }[] };
    return keys.find((key) => key.kid === kid) as never;
  });
  await verify((await reply.json()) as AgentCard);
});

test('the tasks of all agents are listed at the address of all', async () => {
  const stream = await connect('1.0 over JSON-RPC', `${spine.origin}/a2a/model/${MODEL}`, spine.key);
  await collect(stream.sendMessageStream(saying('hello')));
  const reply = await fetchWithKey(spine.key)(`${spine.origin}/a2a`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ListTasks', params: { pageSize: 1 } }),
  });
  expect(await reply.json()).toMatchObject({
    result: {
      tasks: [{ status: { state: 'TASK_STATE_COMPLETED' }, metadata: { 'tollgate/agent': `model/${MODEL}` } }],
      pageSize: 1,
    },
  });
});
