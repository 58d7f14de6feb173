import { afterAll, beforeAll, expect, test } from 'vitest';
import { agentBlock, startAgentSpine, startRawAgent, type AgentSpine } from '../../support/a2a-agent/index.ts';
import { CLIENT_KINDS, collect, connect, saying } from './sdk-client.ts';

// An agent that takes bare messages, and whose card says that it streams. The bare form has no streams.

let agent: Awaited<ReturnType<typeof startRawAgent>>;
let world: AgentSpine;
beforeAll(async () => {
  agent = await startRawAgent(({ request, response }) => {
    const isCard = request.path === '/.well-known/agent-card.json';
    if (!isCard && request.path !== '/a2a') return void response.writeHead(404).end();
    const card = { name: 'Bare', description: 'Takes bare messages.', capabilities: { streaming: true } };
    const task = {
      id: `bare-${Math.random()}`,
      status: { state: 'completed' },
      artifacts: [{ parts: [{ text: 'ok' }] }],
    };
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(isCard ? card : task));
  });
  world = await startAgentSpine(agentBlock({ name: 'bare/agent', endpoint: agent.url }));
});
afterAll(async () => {
  expect(await world.spine.faults()).toEqual([]);
  await world.close();
  await agent.close();
});

test.each(CLIENT_KINDS)('the official client that wants a stream gets the task: %s', async (kind) => {
  const client = await connect(kind, `${world.spine.origin}/a2a/bare/agent`, world.spine.key);
  const events = await collect(client.sendMessageStream(saying('hello')));
  expect(JSON.stringify(events)).toContain('"value":"ok"');
});
