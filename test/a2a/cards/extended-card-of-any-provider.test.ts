import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  agentBlock,
  startAgentSpine,
  startRawAgent,
  type AgentSpine,
  type RawAgent,
} from '../../support/a2a-agent/index.ts';

// A service with two providers. The first has no card. The card of the second declares an extended card.

const NAME = 'two/agents';
let world: AgentSpine;
let agents: readonly RawAgent[];
beforeAll(async () => {
  const cardless = await startRawAgent(({ response }) => void response.writeHead(404).end());
  const extended: RawAgent = await startRawAgent(({ request, response, result }) => {
    const { url } = extended;
    const card = {
      name: 'Second',
      description: 'Has an extended card.',
      version: '1',
      supportedInterfaces: [{ url, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }],
      capabilities: { extendedAgentCard: true },
      skills: [],
    };
    if (request.method === 'GetExtendedAgentCard') return result({ ...card, description: 'For those with a key.' });
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(card));
  });
  agents = [cardless, extended];
  const blocks = agents.map(({ url }, index) =>
    agentBlock({ name: NAME, provider: `Provider ${index}`, endpoint: url, pricing: `per_call = 0.00${index + 1}` }),
  );
  world = await startAgentSpine(blocks.join(''));
});
afterAll(async () => {
  expect(await world.spine.faults()).toEqual([]);
  await world.close();
  for (const agent of agents) await agent.close();
});

test('the extended card that the card declares is given, whichever provider has it', async () => {
  const { origin, key } = world.spine;
  const url = `${origin}/a2a/${NAME}`;
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json', 'a2a-version': '1.0' };
  const card = (await (await fetch(`${url}/.well-known/agent-card.json`, { headers })).json()) as object;
  expect(card).toMatchObject({ name: 'Second', capabilities: { extendedAgentCard: true } });
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'GetExtendedAgentCard', params: {} });
  const reply = await fetch(url, { method: 'POST', headers, body });
  expect(await reply.json()).toMatchObject({
    result: {
      name: 'Second',
      description: 'For those with a key.',
      supportedInterfaces: [{ url }, { url }, { url }, { url }],
    },
  });
});
