import { createMCPClient } from '@ai-sdk/mcp';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { createOpenRouter } from '@openrouter/ai-sdk-provider';
import { APICallError, generateText, streamText, tool } from 'ai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { startAgentSpine, type AgentSpine, type ServedAgent } from '../support/a2a-agent/index.ts';
import { MODEL } from '../support/spine.ts';

// Vercel's AI SDK as it comes from npm: with its provider for OpenAI-compatible services, with OpenRouter's own,
// and as a client of MCP.

let world: AgentSpine;
let served: ServedAgent;
beforeAll(async () => {
  world = await startAgentSpine('[upstream]\ncooldown_ms = 0');
  served = await world.serve({ version: 'both' }, { pricing: 'per_call = 0.02' });
});
afterAll(async () => {
  expect(await world.spine.faults()).toEqual([]);
  await world.close();
});

const PROVIDERS = {
  '@ai-sdk/openai-compatible': () => {
    const { url, key } = world.spine;
    return createOpenAICompatible({ name: 'tollgate', baseURL: url, apiKey: key, includeUsage: true })(MODEL);
  },
  '@openrouter/ai-sdk-provider': () =>
    createOpenRouter({ baseURL: world.spine.url, apiKey: world.spine.key }).chat(MODEL),
} as const;

describe.each(Object.entries(PROVIDERS))('%s', (_name, model) => {
  test('a text and what was used', async () => {
    const { text, usage, finishReason } = await generateText({
      model: model(),
      prompt: 'hello !tokens:4',
      maxOutputTokens: 20,
    });
    expect({ text, finishReason, usage }).toMatchObject({
      text: 'the toll is paid ',
      finishReason: 'stop',
      usage: { outputTokens: 4 },
    });
  });

  test('a stream to its end, and what was used', async () => {
    const { textStream, usage, finishReason } = streamText({
      model: model(),
      prompt: 'hello !tokens:6',
      maxOutputTokens: 20,
    });
    expect((await Array.fromAsync(textStream)).join('')).toBe('the toll is paid für jede ');
    expect([await finishReason, await usage]).toMatchObject(['stop', { outputTokens: 6 }]);
  });

  test('tool calls in a stream run its tool', async () => {
    const weather = tool({ inputSchema: z.object({ city: z.string() }), execute: ({ city }) => `sunny in ${city}` });
    const { toolResults } = streamText({
      model: model(),
      prompt: 'weather?',
      tools: { weather },
      toolChoice: 'required',
    });
    expect(await toolResults).toMatchObject([{ toolName: 'weather', output: 'sunny in Zürich' }]);
  });

  test('the words of a refusal', async () => {
    const refused = generateText({ model: model(), prompt: 'hi !status:400', maxRetries: 0 });
    await expect(refused).rejects.toThrow(/^Provider Test refused the request: /);
    await expect(refused).rejects.toSatisfy((error) => APICallError.isInstance(error) && !error.isRetryable);
  });
});

test.each([
  ['/mcp', 'ask_agent', () => ({ agent: served.service, message: 'echo good morning' })],
  ['its own address', 'send_message', () => ({ message: 'echo good morning' })],
] as const)('@ai-sdk/mcp calls an agent as a tool at %s, and the agent is paid', async (where, name, input) => {
  const url = `${world.spine.origin}/mcp${where === '/mcp' ? '' : `/a2a/${served.service}`}`;
  const client = await createMCPClient({
    transport: { type: 'http', url, headers: { authorization: `Bearer ${world.spine.key}` } },
  });
  try {
    const before = (await world.spine.balance()).available;
    const tools = await client.tools();
    const result = await tools[name]!.execute(input(), { toolCallId: 'call-1', messages: [], context: undefined });
    expect(result).toMatchObject({ content: [{ type: 'text', text: 'good morning' }] });
    expect((await world.spine.balance()).available).toBe(before - 20_000n);
  } finally {
    await client.close();
  }
});
