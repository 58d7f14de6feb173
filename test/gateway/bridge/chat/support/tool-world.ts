import { startMcpFixture } from '../../../../support/mcp-fixture.ts';
import type { Usage } from './chat-shapes.ts';
import { startScriptedModel, type ScriptedModel } from './scripted-model.ts';
import { modelToml, toolToml, UNHURRIED } from './toml.ts';
import { startWorld, type World } from './world.ts';

/** A world with one model that does as it is told, and the fixture's tools at two services. */
export interface ToolWorld {
  readonly world: World;
  readonly model: ScriptedModel;
  /** From here on money is counted. */
  begin(): Promise<void>;
  /** What was charged since, in micro-USD, once no call runs. */
  spent(): Promise<bigint>;
  stop(): Promise<void>;
}

export async function startToolWorld(): Promise<ToolWorld> {
  const fixture = await startMcpFixture();
  const model = await startScriptedModel();
  const world = await startWorld({
    toml: modelToml(model.url) + toolToml(fixture.url) + toolToml(fixture.url, 'other/kit') + UNHURRIED,
  });
  let start = 0n;
  return {
    world,
    model,
    async begin() {
      start = (await world.balance()).available;
    },
    async spent() {
      await world.quiet();
      return start - (await world.balance()).available;
    },
    async stop() {
      await world.stop();
      await model.stop();
      await fixture.close();
    },
  };
}

/** Micro-USD of a turn of 10 prompt and 5 completion tokens, and of a call of a tool. */
export const TURN = 20n;
export const TOOL = 1_000n;
/** The name that the model has for a tool that says its arguments. */
export const ECHO = 'kit__json_schema_2020_12_tool';
export const ADA = { name: 'Ada', email: 'ada@example.com' };
export const KIT = {
  type: 'mcp',
  service: 'kit',
  allowed_tools: ['json_schema_2020_12_tool', 'test_error_handling', 'test_image_content'],
};
/** A tool that the client calls. */
export const OWN = { type: 'function', function: { name: 'mine', parameters: { type: 'object' } } };
export const ask = (more: object = {}) => ({
  model: 'test/model',
  messages: [{ role: 'user', content: 'go' }],
  tools: [KIT],
  max_tokens: 50,
  ...more,
});
export const call = (args: unknown = ADA, name = ECHO, id = 'call_a') => ({ id, name, args });
export const childrenOf = ({ usage }: { readonly usage: Usage }) => usage.cost_details.children!;
