import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { serveRaw, taskResult, writeEvent } from '../a2a/calls/support/raw-served.ts';
import { startAgentSpine, type AgentSpine } from '../support/a2a-agent/index.ts';

// What an agent says that it used, of a task that the gateway ends.

let world: AgentSpine;
beforeAll(async () => {
  world = await startAgentSpine('[upstream]\ncall_timeout_ms = 2000\n');
});
afterAll(() => world.close());

const artifacts = [{ artifactId: 'a', parts: [{ text: 'x'.repeat(5_000) }] }];
const metadata = { 'tollgate/usage': { completion: 4_000 } };

test('the claim of a task that is canceled is held against what the agent shows then', async () => {
  const id = randomUUID();
  const { service } = await serveRaw(
    world,
    (exchange) => {
      const { request, response, result } = exchange;
      if (request.method === 'CancelTask') return result(taskResult(id, 'CANCELED', { artifacts, metadata }).task);
      if (request.method === 'GetTask') return result(taskResult(id, 'WORKING', { artifacts }).task);
      // The stream breaks off, and the rest is seen by asking for it.
      writeEvent(exchange, taskResult(id, 'WORKING'));
      response.end();
    },
    { pricing: 'per_call = 0\ncompletion = 1\nper_call_max = 1' },
  );
  const { spine } = world;
  const response = await spine.post('/chat/completions', {
    model: `a2a/${service}`,
    stream: true,
    messages: [{ role: 'user', content: 'go' }],
  });
  await response.text();
  await spine.quiet();
  const {
    flags,
    outcome,
    cost_micro_usdc: cost,
  } = (await spine.generation(response.headers.get('x-generation-id'))) as {
    readonly flags?: readonly string[];
    readonly outcome?: string;
    readonly cost_micro_usdc: number;
  };
  expect({ outcome, cost, flags }).toEqual({ outcome: 'cut', cost: 4_000, flags: [] });
  expect(await spine.faults()).toEqual([]);
});
