import { randomUUID } from 'node:crypto';
import { afterEach, expect, test } from 'vitest';
import { toolToml } from '../../mcp/calls/modern-post.ts';
import { agentBlock, startCardedAgent } from '../../support/a2a-agent/index.ts';
import { startRawMcp } from '../../support/raw-mcp.ts';
import { UNHURRIED } from '../../support/spine.ts';
import { ofFile, spineOfFile } from '../../support/of-file.ts';

// Integers that a double cannot hold pass with all their digits where a tool is called as an agent, and an agent as a
// model or as a tool.

const SENT = '2512292042121000001';
const SAID = '-9223372036854775807';

let given = '';
const tools = ofFile(
  () =>
    startRawMcp(
      ({ text }) => {
        given = text;
        return `{"content":[{"type":"text","text":"done"}],"structuredContent":{"n":${SAID}},"resultType":"complete"}`;
      },
      ['{"name":"t","inputSchema":{"type":"object"}}'],
    ),
  (one) => one.close(),
);
const agent = ofFile(
  () =>
    startCardedAgent(
      ({ request, response, id }) => {
        const parts = `[{"kind":"data","data":{"n":${SAID}}}]`;
        const message = `{"kind":"message","role":"agent","messageId":"${randomUUID()}","parts":${parts}}`;
        const reply = `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${message}}`;
        const streams = request.body.includes('message/stream');
        response.writeHead(200, { 'content-type': streams ? 'text/event-stream' : 'application/json' });
        response.end(streams ? `data: ${reply}\n\n` : reply);
      },
      { versions: ['0.3'], streaming: true },
    ),
  (one) => one.close(),
);
const spine = spineOfFile(() => ({
  toml: `${UNHURRIED}${toolToml({ name: 'kit', url: tools.url })}${agentBlock({ name: 'far/agent', provider: 'Agent', endpoint: agent.url })}`,
}));
afterEach(async () => {
  expect(await spine.faults()).toEqual([]);
});

async function post(path: string, body: string, headers: Record<string, string> = {}): Promise<string> {
  const response = await fetch(spine.origin + path, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${spine.key}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...headers,
    },
    body,
  });
  const text = await response.text();
  expect(response.status, text).toBe(200);
  return text;
}

const rpc = (method: string, params: string) => `{"jsonrpc":"2.0","id":1,"method":"${method}","params":${params}}`;
const legacy = () =>
  `{"message":{"kind":"message","messageId":"${randomUUID()}","role":"user","parts":[{"kind":"data","data":{"n":${SENT}}}]}}`;
const modern = () => `{"message":{"messageId":"${randomUUID()}","role":"ROLE_USER","parts":[{"data":{"n":${SENT}}}]}}`;

test.each([
  ['message/send', legacy],
  ['message/stream', legacy],
  ['SendMessage', modern],
  ['SendStreamingMessage', modern],
])('a tool that is called as an agent, by %s', async (method, params) => {
  given = '';
  const answer = await post('/a2a/mcp/kit/t', rpc(method, params()));
  expect(given, answer).toContain(`"arguments":{"n":${SENT}}`);
  expect(answer).toContain(`{"n":${SAID}}`);
  const taskId = /"(?:taskId|id)":"(gen-[^"]+)"/.exec(answer)?.[1];
  if (!method.toLowerCase().includes('stream')) return;
  expect(await post('/a2a/mcp/kit/t', rpc('tasks/get', `{"id":"${taskId}"}`))).toContain(`{"n":${SAID}}`);
});

const content = 'how many?';
test.each([
  ['/api/v1/chat/completions', { messages: [{ role: 'user', content }] }],
  ['/api/v1/messages', { max_tokens: 50, messages: [{ role: 'user', content }] }],
  ['/api/v1/responses', { input: content }],
])('an agent that is called as a model at %s', async (path, more) => {
  for (const stream of [false, true])
    expect(await post(path, JSON.stringify({ model: 'a2a/far/agent', stream, ...more }))).toContain(SAID);
});

test('an agent that is called as a model in the Gemini API', async () => {
  const body = JSON.stringify({ contents: [{ role: 'user', parts: [{ text: content }] }] });
  for (const method of ['generateContent', 'streamGenerateContent?alt=sse'])
    expect(await post(`/api/v1beta/models/a2a/far/agent:${method}`, body)).toContain(SAID);
});

test('an agent that is called as a tool', async () => {
  const params = JSON.stringify({ name: 'send_message', arguments: { message: content } });
  expect(await post('/mcp/a2a/far/agent', rpc('tools/call', params))).toContain(SAID);
});
