import { Agent } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bystand, expectUnharmed } from '../support/bystander.ts';
import { startGateway, type Gateway } from '../support/gateway.ts';
import { modelBlock } from '../support/spine.ts';
import { crowd, post } from './support/crowd.ts';
import { CHAT_ANSWERS, startLargeAnswers, TOOL_ANSWERS, type LargeAnswers } from './support/large-answers.ts';

const CALLS = 30;
const WIDTH = 24;
const named = (shape: string) => shape.replaceAll(' ', '-');

let provider: LargeAnswers;
let gateway: Gateway;
const agents: Agent[] = [];

beforeAll(async () => {
  provider = await startLargeAnswers();
  const model = (shape: string) =>
    modelBlock({
      name: `market/${named(shape)}`,
      provider: `Of ${shape}`,
      url: `${provider.url}/${encodeURIComponent(shape)}/v1`,
      prompt: 0,
      completion: 0,
    });
  const tool = (shape: string) => `
[[tools]]
name = "market/tool-${named(shape)}"
display_name = "Tool: ${shape}"
provider_name = "Tool of ${shape}"
endpoint = "${provider.url}/mcp/${encodeURIComponent(shape)}"
[tools.pricing]
per_call = 0
`;
  gateway = await startGateway({
    toml: [...['small', ...Object.keys(CHAT_ANSWERS)].map(model), ...Object.keys(TOOL_ANSWERS).map(tool)].join(''),
    env: { TEST_UPSTREAM_KEY: 'upstream-key' },
  });
});
afterAll(async () => {
  const audit = (await gateway?.admin('GET', '/audit')) as { data: { checks: { ok: boolean }[] } };
  for (const agent of agents) agent.destroy();
  await gateway?.stop();
  await provider?.stop();
  expect(audit.data.checks.filter(({ ok }) => !ok)).toEqual([]);
});

function newAgent(): Agent {
  const agent = new Agent({ keepAlive: true });
  agents.push(agent);
  return agent;
}

const chat = (agent: Agent, key: string, shape: string) =>
  post(agent, `${gateway.baseUrl}/api/v1/chat/completions`, key, {
    model: `market/${named(shape)}`,
    messages: [{ role: 'user', content: 'hello' }],
    max_tokens: 16,
  });

const META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'crowd', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
};
const callTool = (agent: Agent, key: string, shape: string) =>
  post(
    agent,
    `${gateway.baseUrl}/mcp/market/tool-${named(shape)}`,
    key,
    { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'read', arguments: {}, _meta: META } },
    { accept: 'application/json, text/event-stream', 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': 'read' },
  );

/** One account's calls beside those of another, who makes so many at once as it can at the default rate. */
async function beside(greedy: (agent: Agent, key: string) => Promise<number>): Promise<ReadonlyMap<number, number>> {
  const { key } = await gateway.openAccount('bystander', 1);
  const { key: greed } = await gateway.openAccount('greedy', 1);
  const agent = newAgent();
  const call = async () => (await chat(agent, key, 'small')) === 200;
  const before = await bystand({ call, calls: CALLS });
  const greedyAgent = newAgent();
  // The first large reply starts the thread that reads them.
  await greedy(greedyAgent, greed);
  const many = crowd(WIDTH, () => greedy(greedyAgent, greed));
  const during = await bystand({ call, calls: CALLS });
  const statuses = await many.stop();
  console.log(JSON.stringify({ before, during, statuses: [...statuses] }));
  expectUnharmed(before, during);
  return statuses;
}

describe('an account whose replies are as large as they may be, 24 at once, holds nobody up', () => {
  for (const shape of Object.keys(CHAT_ANSWERS))
    it(`of a chat model: ${shape}`, { timeout: 120_000 }, async () => {
      const statuses = await beside((agent, key) => chat(agent, key, shape));
      expect(statuses.get(200) ?? 0, JSON.stringify([...statuses])).toSatisfy((served: number) =>
        shape === 'too large' ? served === 0 : served > 0,
      );
    });
  for (const shape of Object.keys(TOOL_ANSWERS))
    it(`of a tool: ${shape}`, { timeout: 120_000 }, async () => {
      const statuses = await beside((agent, key) => callTool(agent, key, shape));
      expect([...statuses.keys()].some((status) => status === 200 || status >= 500)).toBe(true);
    });
});
