import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { whole, type Completion } from './support/chat-shapes.ts';
import type { ScriptedModel } from './support/scripted-model.ts';
import { ask, ECHO, KIT, OWN, startToolWorld, type ToolWorld } from './support/tool-world.ts';
import type { World } from './support/world.ts';

// Which tools a request names, and by what names the model has them.

let tools: ToolWorld;
let model: ScriptedModel;
let world: World;
const spent = () => tools.spent();
beforeAll(async () => {
  tools = await startToolWorld();
  ({ model, world } = tools);
});
afterAll(() => tools.stop());
beforeEach(() => tools.begin());
afterEach(async () => {
  expect(await world.faults()).toEqual([]);
  expect(world.errors).toEqual([]);
  expect((await world.balance()).locked).toBe(0n);
});

describe('names', () => {
  test('are those of models’ APIs, and apart from each other', async () => {
    model.says({ text: 'ok' });
    const own = { type: 'function', function: { name: ECHO } };
    const allowed_tools = ['json_schema_2020_12_tool'];
    const tools = [own, { ...KIT, allowed_tools }, { type: 'mcp', service: 'other/kit', allowed_tools }];
    expect((await world.chat(ask({ tools }))).status).toBe(200);
    const names = model.asked[0]!.tools!.map(({ function: { name } }) => name);
    expect(names).toEqual([
      ECHO,
      expect.stringMatching(/^kit__json_schema_2020_12_tool_[0-9a-f]{8}$/),
      'other_kit__json_schema_2020_12_tool',
    ]);
  });

  test.each<[string, object, number, string | undefined]>([
    ['no service', { tools: [{ type: 'mcp' }] }, 400, 'tools[0].service'],
    ['an unknown service', { tools: [OWN, { type: 'mcp', service: 'nobody' }] }, 404, 'tools[1].service'],
    [
      'an unknown tool',
      { tools: [{ type: 'mcp', service: 'kit', allowed_tools: ['none'] }] },
      400,
      'tools[0].allowed_tools[0]',
    ],
    [
      'an unknown tool that is not wanted',
      { tools: [{ type: 'mcp', service: 'kit', disallowed_tools: ['none'] }] },
      400,
      'tools[0].disallowed_tools[0]',
    ],
    [
      'a member that is not known',
      { tools: [{ type: 'mcp', service: 'kit', allowed: ['none'] }] },
      400,
      'tools[0].allowed',
    ],
    ['several answers', { n: 2 }, 400, 'n'],
    ['functions of the old kind', { functions: [{ name: 'f' }] }, 400, 'functions'],
    ['too many rounds', { max_tool_rounds: 33 }, 400, 'max_tool_rounds'],
  ])('that are wrong are refused: %s', async (_what, more, status, param) => {
    const response = await world.chat(ask(more));
    expect(response.status).toBe(status);
    expect((await whole(response)).error).toMatchObject({ param });
    expect(await spent()).toBe(0n);
  });
});

test('all tools of a service are there where none are chosen', async () => {
  model.says({ text: 'ok' });
  const body: Completion = await whole(await world.chat(ask({ tools: [{ type: 'mcp', service: 'kit' }] })));
  expect(body.choices[0]!.message.content).toBe('ok');
  expect(model.asked[0]!.tools!.length).toBeGreaterThan(10);
});

test('a tool that the client does not want is not there', async () => {
  model.says({ text: 'ok' });
  const [one, other] = ['json_schema_2020_12_tool', 'test_error_handling'];
  const chosen = { ...KIT, allowed_tools: [one, other], disallowed_tools: [other] };
  expect((await world.chat(ask({ tools: [chosen] }))).status).toBe(200);
  expect(model.asked[0]!.tools!.map(({ function: { name } }) => name)).toEqual([`kit__${one}`]);
});
