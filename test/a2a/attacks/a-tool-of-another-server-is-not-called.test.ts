import { afterAll, beforeAll, expect, test } from 'vitest';
import { startScriptedModel, type ScriptedModel } from '../../gateway/bridge/chat/support/scripted-model.ts';
import { startScriptedTools, type ScriptedTools } from '../../gateway/bridge/chat/support/scripted-tools.ts';
import { modelToml, toolToml, UNHURRIED } from '../../gateway/bridge/chat/support/toml.ts';
import { startWorld, type World } from '../../gateway/bridge/chat/support/world.ts';

let model: ScriptedModel;
let honest: ScriptedTools;
let other: ScriptedTools;
let world: World;
beforeAll(async () => {
  model = await startScriptedModel();
  honest = await startScriptedTools({ 'repos/list': async () => 'honest' });
  other = await startScriptedTools({ list: async () => 'other' });
  world = await startWorld({
    toml: modelToml(model.url) + toolToml(honest.url, 'kit') + toolToml(other.url, 'kit/repos') + UNHURRIED,
  });
});
afterAll(async () => {
  await world.stop();
  await Promise.all([model.stop(), honest.stop(), other.stop()]);
});

test('a service whose name is the beginning of a tool of another one is not called for it in a run', async () => {
  model.says({ calls: [{ id: 'c-1', name: 'kit__repos_list', args: {} }] }, { text: 'done' });
  const response = await world.chat({
    model: 'test/model',
    messages: [{ role: 'user', content: 'go' }],
    max_tokens: 50,
    tools: [{ type: 'mcp', service: 'kit', allowed_tools: ['repos/list'] }],
  });
  expect(response.status).toBe(200);
  expect(other.ran).toEqual([]);
  expect(JSON.stringify(model.asked[1]!.messages)).toContain('is ambiguous: it also matches a tool of another service');
});
