import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { streamed, whole } from './support/chat-shapes.ts';
import type { ScriptedModel } from './support/scripted-model.ts';
import { ADA, ask, call, ECHO, KIT, OWN, startToolWorld, TOOL, TURN, type ToolWorld } from './support/tool-world.ts';
import type { World } from './support/world.ts';

// A model that has tools of the client beside those that the gateway calls: the client gets what is its own, in a
// form that it can go on from.

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

test('a tool that the client calls ends the run: the call is the answer, and what was said before can be given back', async () => {
  model.says({ text: 'First.', calls: [call()] }, { calls: [call({ x: 1 }, 'mine', 'c1'), call(ADA, ECHO, 'c2')] });
  const { choices, tollgate } = await whole(await world.chat(ask({ tools: [OWN, KIT] })));
  expect(choices).toMatchObject([{ message: { content: 'First.' }, finish_reason: 'tool_calls' }]);
  expect(choices[0]!.message.tool_calls).toEqual([
    { id: 'c1', type: 'function', function: { name: 'mine', arguments: '{"x":1}' } },
  ]);
  expect(tollgate!.messages!.map(({ role }) => role)).toEqual(['assistant', 'tool']);
  // The gateway's tool of the same turn was not called.
  expect(await spent()).toBe(2n * TURN + TOOL);

  model.says({ text: 'Done.' });
  const messages = [
    ...ask().messages,
    ...tollgate!.messages!,
    choices[0]!.message,
    { role: 'tool', tool_call_id: 'c1', content: 'one' },
  ];
  expect((await whole(await world.chat(ask({ tools: [OWN, KIT], messages })))).choices[0]!.message.content).toBe(
    'Done.',
  );
});

test('and as a stream: whole calls in one chunk', async () => {
  model.says({ text: 'Yours.', calls: [call({ x: 1 }, 'mine', 'c1')] });
  const { chunks, last } = await streamed(await world.chat(ask({ tools: [OWN, KIT], stream: true })));
  expect(chunks.flatMap(({ choices }) => choices[0]!.delta.tool_calls ?? [])).toEqual([
    { index: 0, id: 'c1', type: 'function', function: { name: 'mine', arguments: '{"x":1}' } },
  ]);
  expect(last.choices[0]!.finish_reason).toBe('tool_calls');
});

test.each([false, true])('a call has the members that its provider added; streamed: %s', async (stream) => {
  const extra_content = { google: { thought_signature: 'S' } };
  const own = { id: 'c1', type: 'function', function: { name: 'mine', arguments: '{}' }, extra_content };
  const choice = { index: 0, [stream ? 'delta' : 'message']: { tool_calls: [{ index: 0, ...own }] } };
  const text = JSON.stringify({ choices: [{ ...choice, finish_reason: 'tool_calls' }] });
  const raw = stream
    ? { type: 'text/event-stream', text: `data: ${text}\n\ndata: [DONE]\n\n` }
    : { type: 'application/json', text };
  model.says({ raw });
  const response = await world.chat(ask({ tools: [OWN, KIT], stream }));
  const calls = stream
    ? (await streamed(response)).chunks.flatMap(({ choices }) => choices[0]!.delta.tool_calls ?? [])
    : (await whole(response)).choices[0]!.message.tool_calls;
  expect(calls).toEqual([stream ? { index: 0, ...own } : own]);
});
