import OpenAI from 'openai';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { said, startScriptedAgent, type ScriptedAgent } from './support/scripted-agent.ts';
import { startScriptedModel, type ScriptedModel } from './support/scripted-model.ts';
import { startScriptedTools, type ScriptedTools } from './support/scripted-tools.ts';
import { agentToml, modelToml, toolToml, UNHURRIED } from './support/toml.ts';
import { startWorld, type World } from './support/world.ts';

// The usual client reads agents, tools and runs of tools as it reads models.

let agent: ScriptedAgent;
let model: ScriptedModel;
let tools: ScriptedTools;
let world: World;
let client: OpenAI;
beforeAll(async () => {
  agent = await startScriptedAgent();
  model = await startScriptedModel();
  tools = await startScriptedTools({ hour: async () => 'noon' });
  world = await startWorld({
    toml: agentToml(agent.url) + modelToml(model.url) + toolToml(tools.url) + UNHURRIED,
    agents: agent.target,
  });
  client = new OpenAI({ baseURL: world.url, apiKey: world.key, maxRetries: 0 });
});
afterAll(async () => {
  await world.stop();
  await tools.stop();
  await model.stop();
  await agent.stop();
});
afterEach(async () => {
  expect(await world.faults()).toEqual([]);
});

const messages = [{ role: 'user' as const, content: 'what time is it?' }];

test.each(['a2a/weather', 'mcp/kit/hour'])('%s, whole and streamed', async (name) => {
  agent.says(() => [said('no'), said('on'), { finish: 'stop', taskId: 't-1' }]);
  const ask = { model: name, messages: [{ role: 'user' as const, content: '{}' }] };
  expect((await client.chat.completions.create(ask)).choices[0]!.message.content).toBe('noon');
  const completion = await client.chat.completions.stream(ask).finalChatCompletion();
  expect(completion.choices[0]).toMatchObject({ message: { content: 'noon' }, finish_reason: 'stop' });
});

test('an agent that failed in a stream is an error', async () => {
  agent.says(() => [said('I '), { finish: 'failed', error: 'no clock' }]);
  await expect(
    client.chat.completions.stream({ model: 'a2a/weather', messages }).finalChatCompletion(),
  ).rejects.toThrow('a2a/weather failed: no clock');
});

test('a run of tools, whole and streamed', async () => {
  const hours = { type: 'mcp', service: 'kit' } as unknown as OpenAI.ChatCompletionTool;
  const turns = [{ text: 'Let me look.', calls: [{ name: 'kit__hour' }] }, { text: 'It is noon.' }];
  model.says(...turns);
  const ask = { model: 'test/model', messages, tools: [hours], max_tokens: 50 };
  expect((await client.chat.completions.create(ask)).choices[0]!.message.content).toBe('Let me look.\n\nIt is noon.');
  model.says(...turns);
  let words = '';
  for await (const chunk of await client.chat.completions.create({ ...ask, stream: true }))
    words += chunk.choices[0]?.delta.content ?? '';
  expect(words).toBe('Let me look.\n\nIt is noon.');
});

test('a function of its own that a run asks it to call, streamed', async () => {
  const own: OpenAI.ChatCompletionTool = {
    type: 'function',
    function: { name: 'mine', parameters: { type: 'object', properties: {} } },
  };
  const hours = { type: 'mcp', service: 'kit' } as unknown as OpenAI.ChatCompletionTool;
  model.says({ calls: [{ name: 'kit__hour', id: 'c0' }] }, { calls: [{ name: 'mine', id: 'c1', args: { at: 12 } }] });
  const completion = await client.chat.completions.create({
    model: 'test/model',
    messages,
    tools: [own, hours],
    max_tokens: 50,
  });
  expect(completion.choices[0]!.message.tool_calls).toEqual([
    { id: 'c1', type: 'function', function: { name: 'mine', arguments: '{"at":12}' } },
  ]);
  expect(completion.choices[0]!.finish_reason).toBe('tool_calls');
});
