import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { Agent } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bystand, expectUnharmed, type Fare } from '../support/bystander.ts';
import { stallsAt, watchedAt } from '../support/loop-stalls.ts';
import { startGateway, type Gateway } from '../support/gateway.ts';
import { modelBlock } from '../support/spine.ts';
import { post } from './support/crowd.ts';
import type { CrowdOrder } from './support/greedy-worker.ts';
import { CHAT_ANSWERS, TOOL_ANSWERS } from './support/large-answers.ts';

const DEEP = process.env['TOLLGATE_DEEP'] === '1';
/** By day the shapes that take longest to read; the deep run takes all. */
const CHAT_SHAPES = DEEP ? Object.keys(CHAT_ANSWERS) : ['keys'];
const TOOL_SHAPES = DEEP ? Object.keys(TOOL_ANSWERS) : ['too many keys'];
/** Each beside replies of many megabytes. By day a third as many: they are read one by one, and all are waited for. */
const CALLS = DEEP ? 30 : 9;
const WIDTH = DEEP ? 24 : 8;
/** The longest that the event loop may be kept from everybody else. */
const STALL_MS = 100;
const directory = mkdtempSync(join(tmpdir(), 'tollgate-fairness-'));
const socketPath = join(directory, 'loop.sock');
const named = (shape: string) => shape.replaceAll(' ', '-');

let greedy: Worker;
let upstream: string;
let gateway: Gateway;
const agent = new Agent({ keepAlive: true });

beforeAll(async () => {
  greedy = new Worker(new URL('./support/greedy-worker.ts', import.meta.url), { execArgv: [] });
  const url = (upstream = await heard<string>());
  const model = (shape: string) =>
    modelBlock({
      name: `market/${named(shape)}`,
      provider: `Of ${shape}`,
      url: `${url}/${encodeURIComponent(shape)}/v1`,
      prompt: 0,
      completion: 0,
    });
  const tool = (shape: string) => `
[[tools]]
name = "market/tool-${named(shape)}"
display_name = "Tool: ${shape}"
provider_name = "Tool of ${shape}"
endpoint = "${url}/mcp/${encodeURIComponent(shape)}"
[tools.pricing]
per_call = 0
`;
  gateway = await startGateway({
    toml: [...['small', ...Object.keys(CHAT_ANSWERS)].map(model), ...Object.keys(TOOL_ANSWERS).map(tool)].join(''),
    env: { TEST_UPSTREAM_KEY: 'upstream-key', ...watchedAt(socketPath) },
  });
});
afterAll(async () => {
  const audit = (await gateway?.admin('GET', '/audit')) as { data: { checks: { ok: boolean }[] } };
  agent.destroy();
  greedy?.postMessage('close');
  await gateway?.stop();
  rmSync(directory, { recursive: true });
  expect(audit.data.checks.filter(({ ok }) => !ok)).toEqual([]);
});

const heard = async <T>() => ((await once(greedy, 'message')) as [T])[0];

const chat = (shape: string) => ({
  direct: `/${encodeURIComponent(shape)}/v1/chat/completions`,
  path: '/api/v1/chat/completions',
  body: { model: `market/${named(shape)}`, messages: [{ role: 'user', content: 'hello' }], max_tokens: 16 },
  headers: {},
});

const META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'crowd', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
};
const tool = (shape: string) => ({
  direct: `/mcp/${encodeURIComponent(shape)}`,
  path: `/mcp/market/tool-${named(shape)}`,
  body: { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'read', arguments: {}, _meta: META } },
  headers: {
    accept: 'application/json, text/event-stream',
    'mcp-protocol-version': '2026-07-28',
    'mcp-method': 'tools/call',
    'mcp-name': 'read',
  },
});

type Asked = ReturnType<typeof chat> | ReturnType<typeof tool>;

/**
 * One account's calls beside those of another, who makes so many at once as it can at the default rate. Resolves
 * with how those were answered. The waits are held against those beside the same crowd that asks its provider
 * directly: what moving such replies does to machine and provider is in both.
 */
async function beside({ path, direct, body, headers }: Asked): Promise<ReadonlyMap<number, number>> {
  const { key } = await gateway.openAccount('bystander', 1);
  const { key: greed } = await gateway.openAccount('greedy', 1);
  const small = chat('small');
  const call = async () => (await post(agent, gateway.baseUrl + small.path, key, small.body)) === 200;
  const beneath = async (
    url: string,
  ): Promise<{ readonly fare: Fare; readonly statuses: ReadonlyMap<number, number> }> => {
    greedy.postMessage({ url, key: greed, body, headers, width: WIDTH } satisfies CrowdOrder);
    await heard();
    const fare = await bystand({ call, calls: CALLS });
    greedy.postMessage('stop');
    return { fare, statuses: await heard<ReadonlyMap<number, number>>() };
  };
  const { fare: before } = await beneath(upstream + direct);
  await stallsAt(socketPath);
  const { fare: during, statuses } = await beneath(gateway.baseUrl + path);
  const { delayMs, cpuMs, garbageMs } = await stallsAt(socketPath);
  expectUnharmed(before, during);
  expect(cpuMs, JSON.stringify({ before, during, delayMs, cpuMs, garbageMs })).toBeLessThan(STALL_MS);
  return statuses;
}

/** The beginning and the end of one answer. */
async function answerTo({ path, body, headers }: Asked): Promise<string> {
  const { key } = await gateway.openAccount('one', 1);
  const response = await fetch(gateway.baseUrl + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });
  expect(response.status).toBe(200);
  const text = await response.text();
  return text.slice(0, 2_000) + text.slice(-2_000);
}

describe(`an account whose replies are as large as they may be, or larger, ${WIDTH} at once, stops nobody`, () => {
  for (const shape of CHAT_SHAPES)
    it(`of a chat model: ${shape}`, async () => {
      const statuses = await beside(chat(shape));
      expect(statuses.get(200)).toBeGreaterThan(0);
      // One that is too large is cut, as are more words than were asked for.
      const short = shape === 'keys' || shape === 'elements';
      expect(await answerTo(chat(shape))).toContain(`"finish_reason":"${short ? 'stop' : 'length'}"`);
    });
  for (const shape of TOOL_SHAPES)
    it(`of a tool: ${shape}`, async () => {
      const statuses = await beside(tool(shape));
      expect(statuses.get(200)).toBeGreaterThan(0);
      const answer = await answerTo(tool(shape));
      if (shape === 'too many keys') expect(answer).toContain('"isError":true');
      else expect(answer).not.toContain('"isError":true');
    });
});
