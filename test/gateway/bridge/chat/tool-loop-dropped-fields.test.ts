import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { startScriptedModel, type ScriptedModel } from './support/scripted-model.ts';
import { startScriptedTools, type ScriptedTools } from './support/scripted-tools.ts';
import { modelToml, toolToml, UNHURRIED } from './support/toml.ts';
import { startWorld, type World } from './support/world.ts';

// A model whose tools the gateway calls gets the fields that it would get without, in every turn, and its client is
// told of the others.

let tools: ScriptedTools;
let model: ScriptedModel;
let world: World;
beforeAll(async () => {
  tools = await startScriptedTools({ look: async () => 'seen' });
  model = await startScriptedModel();
  world = await startWorld({ toml: modelToml(model.url) + toolToml(tools.url) + UNHURRIED });
});
afterAll(async () => {
  await world.stop();
  await model.stop();
  await tools.stop();
});
afterEach(async () => {
  expect(await world.faults()).toEqual([]);
  expect(world.errors).toEqual([]);
});

test.each([false, true])('in each turn of a run (stream: %s)', async (stream) => {
  model.says({ calls: [{ name: 'kit__look' }] }, { text: 'ok' });
  const response = await world.chat({
    model: 'test/model',
    messages: [{ role: 'user', content: 'go' }],
    tools: [{ type: 'mcp', service: 'kit' }],
    max_tokens: 50,
    n_predict: 20_000,
    options: { num_predict: 20_000, seed: 1 },
    stream,
  });
  expect(await response.text()).toContain('ok');
  expect(response.headers.get('x-tollgate-dropped')).toBe('n_predict, options.num_predict');
  expect(model.asked).toHaveLength(2);
  for (const asked of model.asked) {
    expect(asked).toMatchObject({ max_tokens: 50, options: { seed: 1 } });
    expect(asked).not.toHaveProperty('n_predict');
    expect(asked['options']).not.toHaveProperty('num_predict');
  }
});
