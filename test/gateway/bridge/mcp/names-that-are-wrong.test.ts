import { afterAll, beforeAll, expect, test } from 'vitest';
import { startMcpFixture, type McpFixture } from '../../../support/mcp-fixture.ts';
import { modelBlock, startSpine, UNHURRIED, type Spine } from '../../../support/spine.ts';
import { toolBlock } from '../../../mcp/conformance/tool-block.ts';
import { modernPost } from '../../../mcp/calls/modern-post.ts';
import { agentBlock } from '../../../support/a2a-agent/index.ts';

// Whoever misspells a name, or calls a tool in a way that it refuses, is told so in words that it can act on, at
// the routes of MCP and A2A.

let fixture: McpFixture;
let spine: Spine;
beforeAll(async () => {
  fixture = await startMcpFixture();
  const toml =
    toolBlock('acme/kit', fixture.url) +
    agentBlock({ name: 'acme/weather', endpoint: 'http://127.0.0.1:9' }) +
    modelBlock({ name: 'acme/sage', provider: 'Sage', url: 'http://127.0.0.1:9/v1' });
  spine = await startSpine({ toml: UNHURRIED + toml });
  // The tools are known once their server was asked.
  expect((await modernPost(spine, '/mcp/acme/kit', 'tools/list')).message.result).toMatchObject({
    tools: expect.any(Array),
  });
});
afterAll(async () => {
  expect(await spine.faults()).toEqual([]);
  await spine.stop();
  await fixture.close();
});

test.each([
  ['acme/kid', 'Service not found: acme/kid. The nearest: acme/kit'],
  ['a2a/acme/wether', 'Agent not found: a2a/acme/wether. The nearest: a2a/acme/weather'],
  ['model/acme/sagge', 'Model not found: model/acme/sagge. The nearest: model/acme/sage'],
  ['q', 'Service not found: q'],
])('MCP at /mcp/%s, with a session and without', async (service, message) => {
  const error = { code: -32013, message, data: { type: 'not_found' } };
  const { status, message: said } = await modernPost(spine, `/mcp/${service}`, 'tools/list');
  expect([status, said.error]).toMatchObject([404, error]);
  const opened = await fetch(`${spine.origin}/mcp/${service}`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${spine.key}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
    },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 0,
      method: 'initialize',
      params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 't', version: '1' } },
    }),
  });
  expect(await opened.json()).toMatchObject({ id: 0, error });
});

const send = async (service: string, text: string) => {
  const response = await fetch(`${spine.origin}/a2a/${service}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${spine.key}`, 'content-type': 'application/json', 'a2a-version': '1.0' },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'SendMessage',
      params: { message: { messageId: crypto.randomUUID(), role: 'ROLE_USER', parts: [{ text }] } },
    }),
  });
  return ((await response.json()) as { readonly error: { readonly code: number; readonly message: string } }).error;
};

test.each([
  ['acme/wether', 'Agent not found: acme/wether. The nearest: acme/weather'],
  ['model/acme/sagge', 'Model not found: model/acme/sagge. The nearest: model/acme/sage'],
  [
    'mcp/acme/kit/test_simple_txet',
    'Tool not found: mcp/acme/kit/test_simple_txet. The nearest: mcp/acme/kit/test_simple_te',
  ],
  ['q', 'Agent not found: q. GET /api/v1/agents lists all agents'],
])('A2A at /a2a/%s', async (service, message) => {
  expect((await send(service, 'hello')).message).toContain(message);
});

test('what a tool refuses in its own words is the mistake of its caller, and no failure of a provider, by A2A and by chat', async () => {
  const before = (await spine.balance()).available;
  const error = await send('mcp/acme/kit/test_error_handling', '{}');
  expect(error).toMatchObject({ code: -32602, message: expect.stringContaining('intentionally returns an error') });
  const chat = await spine.post('/chat/completions', {
    model: 'mcp/acme/kit/test_error_handling',
    messages: [{ role: 'user', content: '{}' }],
  });
  expect((await chat.json()) as object).toMatchObject({ error: { type: 'unprocessable', code: 422 } });
  await spine.quiet();
  expect((await spine.balance()).available).toBe(before);
});
