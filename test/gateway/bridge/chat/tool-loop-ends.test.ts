import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { streamed, whole } from './support/chat-shapes.ts';
import type { ScriptedModel } from './support/scripted-model.ts';
import { ask, call, startToolWorld, TOOL, TURN, type ToolWorld } from './support/tool-world.ts';
import type { World } from './support/world.ts';
import { atThisLoad } from '../../../support/at-this-load.ts';

// A run that does not come to its own end: out of rounds, out of money, out of time, or failed. What was paid is told.

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

test('after the last round the model has none of these tools, and has to answer', async () => {
  model.says((asked) => (asked.tools ? { calls: [call()] } : { text: 'enough' }));
  const body = await whole(await world.chat(ask({ max_tool_rounds: 2, tool_choice: 'required' })));
  expect(body.choices).toMatchObject([{ message: { content: 'enough' }, finish_reason: 'stop' }]);
  expect(model.asked.map(({ tools, tool_choice: choice }) => [tools?.length, choice])).toEqual([
    [3, 'required'],
    [3, 'auto'],
    [undefined, undefined],
  ]);
  expect(await spent()).toBe(3n * TURN + 2n * TOOL);
});

test('a model that asks for tools that it no longer has is cut', async () => {
  model.says({ calls: [call()] });
  const { choices, tollgate } = await whole(await world.chat(ask({ max_tool_rounds: 1 })));
  expect(choices[0]!.finish_reason).toBe('length');
  expect(tollgate!.note!.message).toContain('max_tool_rounds');
});

test('a turn that is cut at its tokens is the last: what it asked for may be half of it', async () => {
  model.says({ text: 'Looking', calls: [call()], finish: 'length' });
  const { choices } = await whole(await world.chat(ask()));
  expect(choices).toMatchObject([{ message: { content: 'Looking' }, finish_reason: 'length' }]);
  expect(choices[0]!.message).not.toHaveProperty('tool_calls');
  expect(await spent()).toBe(TURN);
});

describe('the budget', () => {
  // A turn is locked with its estimate: 3 tools and some words, and 50 tokens.
  test('that is used up ends the reply with what there is', async () => {
    model.says({ text: 'Looking.', calls: [call()] });
    const response = await world.chat(ask({ max_cost: '0.0065' }));
    expect(response.status).toBe(200);
    const body = await whole(response);
    expect(body.choices[0]!.finish_reason).toBe('length');
    expect(body.choices[0]!.message.content).toMatch(/^Looking\./);
    expect(body.tollgate!.note).toMatchObject({ type: 'insufficient_balance', code: 402 });
    expect(await spent()).toBe(BigInt(Math.round(body.usage.cost * 1e6)));
    expect(await spent()).toBeLessThanOrEqual(6_500n);
  });

  test('that does not pay for one turn is refused', async () => {
    const response = await world.chat(ask({ max_cost: 0.000001 }));
    expect(response.status).toBe(402);
    expect((await whole(response)).error!.type).toBe('insufficient_balance');
    expect(await spent()).toBe(0n);
  });

  test('that the account does not have is refused', async () => {
    const response = await world.chat(ask({ max_cost: 1_000 }));
    expect(response.status).toBe(402);
    expect((await whole(response)).error!.message).toContain('max_cost');
  });

  test('that is no amount is refused', async () => {
    expect((await whole(await world.chat(ask({ max_cost: 'much' })))).error).toMatchObject({
      type: 'invalid_request',
      param: 'max_cost',
    });
  });
});

describe('time that runs out', () => {
  const RUN_MS = 600_000;
  afterEach(() => vi.restoreAllMocks());

  /** Lets a run's time pass during its tool call, all but `leftMs`. */
  function toolTakesAllBut(leftMs: number) {
    const { mcp } = world.targets;
    const toCall = mcp.toCall.bind(mcp);
    vi.spyOn(mcp, 'toCall').mockImplementation((...asked) => {
      const now = performance.now.bind(performance);
      vi.spyOn(performance, 'now').mockImplementation(() => now() + RUN_MS - leftMs);
      return toCall(...asked);
    });
  }

  test.each([false, true])('during a tool call ends the reply, which is paid; streamed: %s', async (stream) => {
    model.says({ text: 'Looking.', calls: [call()] }, { text: 'too late' });
    toolTakesAllBut(0);
    const response = await world.chat(ask({ stream }));
    const last = stream ? (await streamed(response)).last : await whole(response);
    expect(last).toMatchObject({
      choices: [{ finish_reason: 'length' }],
      usage: { cost: 0.00102 },
      tollgate: { note: { message: 'The run took longer than a call may take' } },
    });
    expect(last).not.toHaveProperty('error');
    expect(model.asked).toHaveLength(1);
    expect(await spent()).toBe(TURN + TOOL);
  });

  test('during a turn ends the reply, too', async () => {
    const answered = Promise.withResolvers<void>();
    model.says({ text: 'Looking.', calls: [call()] }, { text: 'too late', until: answered.promise });
    toolTakesAllBut(atThisLoad(2_000));
    const body = await whole(await world.chat(ask()));
    answered.resolve();
    expect(body).toMatchObject({
      choices: [{ message: { content: 'Looking.' }, finish_reason: 'length' }],
      tollgate: { note: { type: 'reply_cut' } },
    });
    expect(body).not.toHaveProperty('error');
    // The late turn costs its input.
    expect(await spent()).toBeGreaterThan(TURN + TOOL);
  });
});

describe('a turn that fails', () => {
  test('at first is an error as ever', async () => {
    model.says({ status: 500 });
    const response = await world.chat(ask());
    expect(response.status).toBe(500);
    expect(await spent()).toBe(0n);
  });

  test.each([false, true])('later ends the reply, which tells what was paid; streamed: %s', async (stream) => {
    model.says({ text: 'Looking.', calls: [call()] }, { status: 500 });
    const response = await world.chat(ask({ stream }));
    const last = stream ? (await streamed(response)).last : await whole(response);
    expect(last).toMatchObject({
      choices: [{ finish_reason: 'error' }],
      error: { type: 'provider_unavailable' },
      usage: { cost: 0.00102 },
      tollgate: { note: { type: 'provider_unavailable' } },
    });
    expect(await spent()).toBe(TURN + TOOL);
  });
});
