import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { callTool, toolToml } from './mcp/calls/modern-post.ts';
import { agentBlock, startCardedAgent, type RawAgent } from './support/a2a-agent/index.ts';
import { startRawMcp, type RawMcp } from './support/raw-mcp.ts';
import { ask, modelBlock, startSpine, UNHURRIED, type Spine } from './support/spine.ts';

// A provider repeats the key that it was sent, in its errors. Consumers see the error without the key, through
// every route.

const KEY = 'canary/upstream+key-0123456789';
const FORMS: Readonly<Record<string, string>> = {
  'with its scheme': `Bearer ${KEY}`,
  alone: KEY,
  'in base64': Buffer.from(KEY).toString('base64'),
  'in base64 with its scheme': Buffer.from(`Bearer ${KEY}`).toString('base64'),
  'as in a URL': encodeURIComponent(KEY),
};
const said = (): string[] => Object.values(FORMS).map((form) => `bad key ${form}.`);
/** As a server may write it: `\/` and letters by their numbers. */
const written = (text: string) =>
  JSON.stringify(text)
    .replaceAll('/', '\\/')
    .replaceAll('c', String.raw`\u0063`);

let chat: Server;
let tools: RawMcp;
let agent: RawAgent;
let spine: Spine;
let message = '';
/** The chat provider answers with 200 and an error in its choice. */
let inChoice = false;

beforeAll(async () => {
  chat = createServer((request, response) => {
    request
      .resume()
      .on('end', () =>
        response
          .writeHead(inChoice ? 200 : 400, { 'content-type': 'application/json' })
          .end(
            inChoice
              ? `{"choices":[{"message":{},"finish_reason":"error","error":{"message":${written(message)}}}]}`
              : `{"error":{"message":${written(message)}}}`,
          ),
      );
  });
  await new Promise<void>((resolve) => chat.listen(0, '127.0.0.1', resolve));
  tools = await startRawMcp(({ method, params, idText }) => {
    if (method !== 'tools/call')
      return '{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[{"name":"t","inputSchema":{}}]}';
    if (params['name'] === 'result')
      return `{"content":[{"type":"text","text":${written(message)}}],"isError":true,"resultType":"complete"}`;
    const error = `{"jsonrpc":"2.0","id":${idText},"error":{"code":-32000,"message":${written(message)},"data":{"key":${written(message)}}}}`;
    return (response) =>
      void (params['name'] === 'event'
        ? response.writeHead(200, { 'content-type': 'text/event-stream' }).end(`id: 7\ndata: ${error}\n\n`)
        : response.writeHead(200, { 'content-type': 'application/json' }).end(error));
  });
  agent = await startCardedAgent(
    ({ response, id }) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(
        `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"error":{"code":-32602,"message":${written(message)},"data":[${written(message)}]}}`,
      );
    },
    { versions: ['0.3'], streaming: true },
  );
  const apiKey = 'std::env::TEST_UPSTREAM_KEY';
  spine = await startSpine({
    env: { TEST_UPSTREAM_KEY: KEY },
    toml: `${UNHURRIED}[upstream]\ncooldown_ms = 0
${modelBlock({ name: 'test/echo', provider: 'Echo', url: `http://127.0.0.1:${(chat.address() as AddressInfo).port}/v1` })}
${toolToml({ name: 'echo', url: tools.url }).replace('[tools.pricing]', `api_key = "${apiKey}"\n[tools.pricing]`)}
${agentBlock({ name: 'echo/agent', provider: 'Agent', endpoint: agent.url, apiKey })}`,
  });
});
afterAll(async () => {
  await spine.stop();
  await tools.close();
  await agent.close();
  chat.closeAllConnections();
  chat.close();
});
afterEach(async () => {
  expect(await spine.faults()).toEqual([]);
});

function expectClean(text: string): void {
  expect(text).toContain('bad key [redacted].');
  for (const form of Object.values(FORMS)) expect(text).not.toContain(form);
  expect(text).not.toContain('canary');
}

test('in a chat', async () => {
  for (message of said()) {
    const response = await spine.post('/chat/completions', ask('hello', { model: 'test/echo' }));
    expect(response.status).toBe(400);
    expectClean(await response.text());
  }
});

test('in a choice of a chat', async () => {
  inChoice = true;
  for (message of said()) {
    const response = await spine.post('/chat/completions', ask('hello', { model: 'test/echo' }));
    expect(response.status).toBe(500);
    expectClean(await response.text());
  }
});

test.each(['error', 'event', 'result'])('in an MCP %s', async (kind) => {
  for (message of said()) {
    const reply = await callTool(spine, 'echo', kind);
    expectClean(JSON.stringify(reply.message));
    expectClean(reply.text);
  }
});

test("in an agent's error", async () => {
  for (message of said()) {
    const response = await fetch(`${spine.origin}/a2a/echo/agent`, {
      method: 'POST',
      headers: { authorization: `Bearer ${spine.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method: 'message/send',
        params: {
          message: {
            kind: 'message',
            role: 'user',
            messageId: crypto.randomUUID(),
            parts: [{ kind: 'text', text: 'hello' }],
          },
        },
      }),
    });
    expectClean(await response.text());
  }
});

test('and not in the logs', () => {
  for (const form of Object.values(FORMS)) expect(spine.logs.join('')).not.toContain(form);
});
