import { afterAll, beforeAll, expect, test } from 'vitest';
import { startMcpFixture } from '../../support/mcp-fixture.ts';
import { startScriptedModel, type ScriptedModel } from '../../gateway/bridge/chat/support/scripted-model.ts';
import { toolToml } from '../../gateway/bridge/chat/support/toml.ts';
import { modelBlock, startSpine, UNHURRIED, type Spine } from '../../support/spine.ts';

// A run of turns is several chat calls: the client's own body, with the tokens of its tools, reaches no provider.

const NATIVE = 'acme/native';
const SECRET = 'token-of-the-consumer';
let model: ScriptedModel;
let fixture: Awaited<ReturnType<typeof startMcpFixture>>;
let spine: Spine;
beforeAll(async () => {
  model = await startScriptedModel();
  fixture = await startMcpFixture();
  const native = { provider: 'Acme', url: model.url, params: 'wires = ["messages", "responses"]' };
  spine = await startSpine({ toml: UNHURRIED + modelBlock({ name: NATIVE, ...native }) + toolToml(fixture.url) });
});
afterAll(async () => {
  try {
    expect(await spine.faults()).toEqual([]);
  } finally {
    await spine.stop();
    await model.stop();
    await fixture.close();
  }
});

const post = (path: string, body: object) =>
  fetch(`${spine.url}/${path}`, {
    method: 'POST',
    headers: { 'x-api-key': spine.key, 'content-type': 'application/json' },
    body: JSON.stringify({ model: NATIVE, ...body }),
  });

const HI = [{ role: 'user', content: 'Hi' }];

test.each([
  [
    'messages',
    () => ({
      max_tokens: 50,
      messages: HI,
      mcp_servers: [
        { type: 'url', name: 'kit', url: `${new URL(spine.url).origin}/mcp/kit`, authorization_token: SECRET },
      ],
      tools: [{ type: 'mcp_toolset', mcp_server_name: 'kit' }],
    }),
  ],
  [
    'responses',
    () => ({ input: 'Hi', max_output_tokens: 50, tools: [{ type: 'mcp', service: 'kit', authorization: SECRET }] }),
  ],
])('a run of %s asks a native provider by chat', async (path, body) => {
  model.says({ calls: [{ name: 'kit__json_schema_2020_12_tool', args: { name: 'Ada' } }] }, { text: 'It is Ada.' });
  const reply = await post(path, body());
  const text = await reply.text();
  expect([reply.status, text]).toEqual([200, expect.stringContaining('It is Ada.')]);
  expect(reply.headers.get('x-tollgate-wire')).toBe('translated');
  expect(model.asked).toHaveLength(2);
  expect(JSON.stringify(model.asked)).not.toContain(SECRET);
  expect(model.asked[1]!.messages.at(-1)).toMatchObject({ role: 'tool' });
});

test.each([
  [
    'messages',
    () => ({
      max_tokens: 50,
      messages: HI,
      mcp_servers: [
        { type: 'url', name: 'kit', url: `${new URL(spine.url).origin}/mcp/kit`, authorization_token: SECRET },
        { type: 'url', name: 'else', url: 'https://mcp.example/mcp' },
      ],
      tools: [
        { type: 'mcp_toolset', mcp_server_name: 'kit' },
        { type: 'mcp_toolset', mcp_server_name: 'else' },
      ],
    }),
  ],
  [
    'messages',
    () => ({
      max_tokens: 50,
      messages: HI,
      mcp_servers: [{ type: 'url', name: 'else', url: 'https://mcp.example/mcp' }],
      tools: [
        { type: 'mcp', service: 'kit', authorization: SECRET },
        { type: 'mcp_toolset', mcp_server_name: 'else' },
      ],
    }),
  ],
  [
    'responses',
    () => ({
      input: 'Hi',
      max_output_tokens: 50,
      tools: [
        { type: 'namespace', name: 'inner', tools: [{ type: 'mcp', service: 'kit', authorization: SECRET }] },
        { type: 'mcp', server_label: 'else', server_url: 'https://mcp.example/mcp' },
      ],
    }),
  ],
  [
    'responses',
    () => ({
      input: [
        { role: 'user', content: 'Hi' },
        {
          type: 'additional_tools',
          tools: [
            { type: 'mcp', server_url: `${new URL(spine.url).origin}/mcp/kit`, authorization: SECRET },
            { type: 'mcp', server_label: 'else', server_url: 'https://mcp.example/mcp' },
          ],
        },
      ],
      max_output_tokens: 50,
    }),
  ],
])('%s with tools of the gateway and of another MCP server reach no provider', async (path, body) => {
  model.says({ text: 'Hello.' });
  const reply = await post(path, body());
  expect([reply.status, await reply.text()]).toEqual([422, expect.stringContaining('only tools of its own services')]);
  expect(model.asked).toEqual([]);
});

test.each([
  ['messages/count_tokens', { messages: HI, tools: [{ type: 'mcp_toolset', mcp_server_name: 'else' }] }],
  ['responses/input_tokens', { input: 'Hi', tools: [{ type: 'mcp', server_url: 'https://mcp.example/mcp' }] }],
])('%s counts a request that only a provider of the wire takes', async (path, body) => {
  const servers = [{ type: 'url', name: 'else', url: 'https://mcp.example/mcp' }];
  const reply = await post(path, { ...body, ...(path.startsWith('messages') ? { mcp_servers: servers } : {}) });
  expect([reply.status, await reply.json()]).toEqual([
    200,
    expect.objectContaining({ input_tokens: expect.any(Number) }),
  ]);
});
