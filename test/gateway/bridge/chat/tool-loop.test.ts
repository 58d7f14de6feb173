import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { streamed, whole } from './support/chat-shapes.ts';
import type { ScriptedModel } from './support/scripted-model.ts';
import { ADA, ask, call, childrenOf, ECHO, startToolWorld, TOOL, TURN, type ToolWorld } from './support/tool-world.ts';
import type { World } from './support/world.ts';

// A model whose tools the gateway calls: turns and tools, each a billed call, all under one lock.

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

describe('lets the model use a tool until it answers', () => {
  test('in one piece', async () => {
    model.says({ text: 'Let me look.', calls: [call()] }, { text: 'It is Ada.' });
    const response = await world.chat(ask());
    expect(response.status).toBe(200);
    const body = await whole(response);
    const id = response.headers.get('x-generation-id');
    expect(body).toMatchObject({
      id,
      object: 'chat.completion',
      model: 'test/model',
      choices: [{ message: { role: 'assistant', content: 'Let me look.\n\nIt is Ada.' }, finish_reason: 'stop' }],
      usage: {
        prompt_tokens: 20,
        completion_tokens: 10,
        total_tokens: 30,
        cost: 0.00104,
        cost_details: { charged_usd: '0.00104' },
      },
    });
    expect(body.choices[0]!.message).not.toHaveProperty('tool_calls');
    expect(response.headers.get('x-cost-usd')).toBe('0.00104');
    expect(response.headers.get('x-provider')).toBe('Models');
    expect(childrenOf(body)).toEqual([
      {
        id: expect.any(String) as string,
        primitive: 'model',
        service: 'test/model',
        cost: 0.00002,
        charged_usd: '0.00002',
      },
      {
        id: expect.any(String) as string,
        primitive: 'tool',
        service: 'kit',
        tool: 'json_schema_2020_12_tool',
        cost: 0.001,
        charged_usd: '0.001',
      },
      {
        id: expect.any(String) as string,
        primitive: 'model',
        service: 'test/model',
        cost: 0.00002,
        charged_usd: '0.00002',
      },
    ]);
    expect(await spent()).toBe(2n * TURN + TOOL);
    const children = await world.children(id);
    expect(children.map((child) => [child.id, child.parent, child.state, child.charged])).toEqual(
      childrenOf(body).map((child, index) => [child.id, id, 'settled', index === 1 ? TOOL : TURN]),
    );
    expect(await world.lock(id)).toMatchObject({ state: 'released', charged: 0n, parent: null });
  });

  test('and tells it what the tool said', async () => {
    model.says({ text: 'Let me look.', calls: [call()] }, { text: 'It is Ada.' });
    await world.chat(ask());
    const [first, second] = model.asked;
    expect(first!.tools!.map(({ function: { name } }) => name)).toEqual([
      ECHO,
      'kit__test_error_handling',
      'kit__test_image_content',
    ]);
    expect(first!.tools![0]!.function).toMatchObject({
      description: 'Has a rich schema',
      parameters: { type: 'object', additionalProperties: false },
    });
    expect(second!.messages).toEqual([
      { role: 'user', content: 'go' },
      {
        role: 'assistant',
        content: 'Let me look.',
        tool_calls: [{ id: 'call_a', type: 'function', function: { name: ECHO, arguments: JSON.stringify(ADA) } }],
      },
      { role: 'tool', tool_call_id: 'call_a', content: JSON.stringify(ADA) },
    ]);
    for (const body of model.asked)
      for (const field of ['max_cost', 'max_tool_rounds']) expect(body).not.toHaveProperty(field);
  });

  test('as a stream, whose words come as they are said', async () => {
    const heard = Promise.withResolvers<void>();
    model.says({ text: 'Let me look.', calls: [call()], until: heard.promise }, { text: 'It is Ada.' });
    const response = await world.chat(ask({ stream: true }));
    const [one, other] = response.body!.tee();
    const reader = one.getReader();
    for (let text = ''; !text.includes('look.');) text += new TextDecoder().decode((await reader.read()).value);
    heard.resolve();
    const { content, chunks, last, done } = await streamed(new Response(other));
    const id = response.headers.get('x-generation-id');
    expect(content).toBe('Let me look.\n\nIt is Ada.');
    expect(new Set(chunks.map((chunk) => chunk.id))).toEqual(new Set([id]));
    expect(chunks.filter(({ choices }) => choices[0]!.delta.role)).toHaveLength(1);
    expect(chunks.filter(({ choices }) => choices[0]!.finish_reason !== null)).toHaveLength(1);
    expect(chunks.some(({ choices }) => choices[0]!.delta.tool_calls)).toBe(false);
    expect(chunks.flatMap(({ tollgate }) => tollgate?.tool_calls ?? [])).toEqual([
      { id: 'call_a', service: 'kit', tool: 'json_schema_2020_12_tool', state: 'running', generation: null },
      {
        id: 'call_a',
        service: 'kit',
        tool: 'json_schema_2020_12_tool',
        state: 'done',
        generation: childrenOf({ usage: last.usage! })[1]!.id,
      },
    ]);
    expect(last).toMatchObject({ choices: [{ finish_reason: 'stop' }], usage: { total_tokens: 30, cost: 0.00104 } });
    expect(done).toBe(true);
    expect(await spent()).toBe(2n * TURN + TOOL);
  });

  test('also one that says its words in parts', async () => {
    model.says({ text: 'Let me look.', inParts: true, calls: [call()] }, { text: 'It is Ada.', inParts: true });
    expect((await whole(await world.chat(ask()))).choices[0]!.message.content).toBe('Let me look.\n\nIt is Ada.');
  });

  test('with receipts for each call', async () => {
    model.says({ calls: [call()] }, { text: 'Ada.' });
    const body = await whole(await world.chat(ask(), { 'x-receipt': '1' }));
    for (const child of childrenOf(body)) expect(child.receipt).toMatch(/^ey/);
  });
});

describe('gives the model back what its provider wants back', () => {
  const SIGNED = { google: { thought_signature: 'S' } };
  const asked = { id: 'call_a', type: 'function', function: { name: ECHO, arguments: JSON.stringify(ADA) } };
  const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };
  const whole = (message: object) => ({
    type: 'application/json',
    text: JSON.stringify({ choices: [{ index: 0, message, finish_reason: 'tool_calls' }], usage }),
  });
  const stream = (...deltas: readonly object[]) => {
    const chunks = [
      ...deltas.map((delta) => ({ choices: [{ index: 0, delta, finish_reason: null }] })),
      { choices: [{ index: 0, delta: {}, finish_reason: 'tool_calls' }] },
      { choices: [], usage },
    ];
    const events = [...chunks.map((chunk) => JSON.stringify(chunk)), '[DONE]'];
    return { type: 'text/event-stream', text: events.map((event) => `data: ${event}\n\n`).join('') };
  };
  const detail = { type: 'reasoning.text', index: 0 };
  const called = [{ ...asked, extra_content: SIGNED }];

  test.each([
    ['in one piece', whole({ content: null, reasoning_content: 'I look.', tool_calls: called })],
    [
      'in pieces',
      stream(
        { reasoning_content: 'I ' },
        { reasoning_content: 'look.' },
        { tool_calls: [{ index: 0, ...asked, function: { name: ECHO, arguments: '' } }] },
        { tool_calls: [{ index: 0, function: { arguments: JSON.stringify(ADA) }, extra_content: SIGNED }] },
      ),
    ],
  ])('its reasoning and the signature of its call, %s', async (_, raw) => {
    model.says({ raw }, { text: 'It is Ada.' });
    await (await world.chat(ask({ stream: raw.type === 'text/event-stream' }))).text();
    expect(model.asked[1]!.messages[1]).toEqual({
      role: 'assistant',
      content: null,
      reasoning_content: 'I look.',
      tool_calls: called,
    });
  });

  test.each([
    [
      'in one piece',
      whole({
        reasoning: 'I look.',
        reasoning_details: [{ ...detail, text: 'I look.', signature: 's' }],
        tool_calls: [asked],
      }),
    ],
    [
      'in pieces',
      stream(
        { reasoning: 'I ', reasoning_details: [{ ...detail, text: 'I ', signature: null }] },
        { reasoning: 'look.', reasoning_details: [{ ...detail, text: 'look.' }] },
        { reasoning_details: [{ ...detail, signature: 's' }] },
        { tool_calls: [{ index: 0, ...asked }] },
      ),
    ],
  ])('its reasoning under the names that the provider uses, %s', async (_, raw) => {
    model.says({ raw }, { text: 'It is Ada.' });
    await (await world.chat(ask({ stream: raw.type === 'text/event-stream' }))).text();
    expect(model.asked[1]!.messages[1]).toEqual({
      role: 'assistant',
      content: null,
      reasoning: 'I look.',
      reasoning_details: [{ ...detail, text: 'I look.', signature: 's' }],
      tool_calls: [asked],
    });
  });

  test('as far as a conversation has room', async () => {
    const long = { index: 0, extra_content: { huge: 'x'.repeat(512 * 1024) } };
    const deltas = Array.from({ length: 17 }, (_, at) => ({ tool_calls: [at === 0 ? { ...asked, ...long } : long] }));
    model.says({ raw: stream(...deltas) }, { text: 'never' });
    const { last } = await streamed(await world.chat(ask({ stream: true })));
    expect(last).toMatchObject({ choices: [{ finish_reason: 'length' }] });
    expect(last.tollgate!.note!.message).toContain('more than');
    expect(model.asked).toHaveLength(1);
  });
});

test('tools of one turn run side by side, and what fails is told to the model for nothing', async () => {
  model.says(
    {
      calls: [
        call(ADA, ECHO, 'c1'),
        call({}, 'kit__test_error_handling', 'c2'),
        call('{nope', ECHO, 'c3'),
        call({}, 'made_up', 'c4'),
        call({}, 'kit__test_image_content', 'c5'),
        call(' null ', 'kit__test_image_content', 'c6'),
        call('Ada', ECHO, 'c7'),
      ],
    },
    { text: 'ok' },
  );
  const body = await whole(await world.chat(ask()));
  expect(body.choices[0]!.message.content).toBe('ok');
  const said = model.asked[1]!.messages.slice(2).map(({ tool_call_id: id, content }) => [id, content]);
  expect(said).toEqual([
    ['c1', JSON.stringify(ADA)],
    ['c2', expect.stringContaining('Error: This tool intentionally returns an error') as string],
    ['c3', 'Error: the arguments are not a JSON object'],
    ['c4', 'Error: there is no tool with this name'],
    ['c5', expect.stringMatching(/^\[file: image\/png, \d+ bytes, not shown\]$/) as string],
    ['c6', expect.stringContaining('[file: image/png') as string],
    ['c7', expect.stringContaining('takes its arguments as a JSON object') as string],
  ]);
  expect(await spent()).toBe(2n * TURN + 3n * TOOL);
  expect(childrenOf(body).filter(({ tool }) => tool === 'test_error_handling')).toMatchObject([{ cost: 0 }]);
});

test.each([false, true])('calls without an id get ids that differ in all rounds; streamed: %s', async (stream) => {
  const nameless = call(ADA, ECHO, '');
  model.says({ calls: [nameless, nameless] }, { calls: [nameless] }, { text: 'ok' });
  await (await world.chat(ask({ stream }))).text();
  const { messages } = model.asked[2]!;
  const asked = messages.flatMap(({ tool_calls: calls }) => (calls ?? []) as { readonly id: string }[]);
  const ids = asked.map(({ id }) => id);
  expect(new Set(ids).size).toBe(3);
  expect(messages.flatMap(({ tool_call_id: id }) => id ?? [])).toEqual(ids);
});

test('a repeated request is answered once, and charged once', async () => {
  model.says({ calls: [call()] }, { text: 'once' });
  const key = { 'idempotency-key': 'loop-1' };
  const first = await world.chat(ask(), key);
  const again = await world.chat(ask(), key);
  expect(await again.text()).toBe(await first.text());
  expect(again.headers.get('idempotent-replayed')).toBe('true');
  expect(model.asked).toHaveLength(2);
  expect(await spent()).toBe(2n * TURN + TOOL);
});

test('a client that leaves stops the run after the turn that is under way', async () => {
  const left = Promise.withResolvers<void>();
  model.says({ text: 'Looking.', calls: [call()], until: left.promise }, { text: 'never' });
  const leaving = new AbortController();
  const response = await world.chat(ask({ stream: true }), {}, leaving.signal);
  await response.body!.getReader().read();
  leaving.abort();
  left.resolve();
  expect(await spent()).toBe(TURN);
  expect(model.asked).toHaveLength(1);
  const id = response.headers.get('x-generation-id');
  expect(JSON.parse((await world.lock(id)).detail!)).toMatchObject({ outcome: 'cancelled' });
});
