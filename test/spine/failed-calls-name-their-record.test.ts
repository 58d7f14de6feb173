import { expect, test } from 'vitest';
import { ask, UNHURRIED } from '../support/spine.ts';
import { spineOfFile } from '../support/of-file.ts';

// Whoever gets no answer can look at what became of the call: errors of calls that were run carry x-generation-id
// on every wire that has headers.

const spine = spineOfFile(() => ({
  toml: `${UNHURRIED}[upstream]
cooldown_ms = 0
[[tools]]
name = "test/tools"
provider_name = "Gone"
endpoint = "http://127.0.0.1:9/mcp"
pricing = { per_call = 0.001 }
[[agents]]
name = "test/agent"
provider_name = "Gone"
endpoint = "http://127.0.0.1:9"
rpc_path = "/rpc"
pricing = { per_call = 0.001 }
`,
}));

const headers = () => ({ authorization: `Bearer ${spine.key}`, 'content-type': 'application/json' });
const post = (path: string, body: object) =>
  fetch(spine.origin + path, { method: 'POST', headers: headers(), body: JSON.stringify(body) });
const rpc = (method: string, params: object) => ({ jsonrpc: '2.0', id: 1, method, params });

test.each([
  ['chat', '/api/v1/chat/completions', () => ask('hello !status:500'), 'test/model'],
  ['chat, refused by its provider', '/api/v1/chat/completions', () => ask('hello !status:400'), 'test/model'],
  ['MCP', '/mcp/test/tools', () => rpc('tools/call', { name: 'dig', arguments: {} }), 'test/tools'],
  [
    'A2A',
    '/a2a/test/agent',
    () =>
      rpc('message/send', {
        message: { kind: 'message', messageId: 'm-1', role: 'user', parts: [{ kind: 'text', text: 'hi' }] },
      }),
    'test/agent',
  ],
  [
    'a model asked over A2A',
    '/a2a/model/test/model',
    () =>
      rpc('message/send', {
        message: { kind: 'message', messageId: 'm-2', role: 'user', parts: [{ kind: 'text', text: '!status:500' }] },
      }),
    'test/model',
  ],
])('%s', async (_wire, path, body, service) => {
  const response = await post(path, body());
  const answer = (await response.json()) as { error?: unknown };
  expect(answer.error).toBeDefined();
  const id = response.headers.get('x-generation-id');
  expect(id).toMatch(/^gen-/);
  expect(await spine.generation(id)).toMatchObject({ state: 'released', cost_micro_usdc: 0, model: service });
});

test('what was never run has no record, and names none', async () => {
  for (const body of [
    { model: 'nobody/nothing', messages: [] },
    { ...ask('x'), model: 'nobody/nothing' },
  ])
    expect((await post('/api/v1/chat/completions', body)).headers.get('x-generation-id')).toBeNull();
  const poor = await spine.tenant('poor', '0.000001');
  const refused = await spine.post('/chat/completions', ask('hello'), { authorization: `Bearer ${poor.key}` });
  expect([refused.status, refused.headers.get('x-generation-id')]).toEqual([402, null]);
});
