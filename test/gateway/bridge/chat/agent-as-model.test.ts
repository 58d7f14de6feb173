import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { streamed, whole } from './support/chat-shapes.ts';
import { said, startScriptedAgent, type ScriptedAgent } from './support/scripted-agent.ts';
import { agentToml, modelToml, UNHURRIED } from './support/toml.ts';
import { startWorld, type World } from './support/world.ts';

// An agent that is asked through the chat route as if it were a model: what it says, in the shapes of chat, at the
// agent's own price.

let agent: ScriptedAgent;
let world: World;
beforeAll(async () => {
  agent = await startScriptedAgent();
  world = await startWorld({
    toml: agentToml(agent.url) + modelToml(agent.url, 'a2a/shadow') + UNHURRIED,
    agents: agent.target,
  });
});
afterAll(async () => {
  await world.stop();
  await agent.stop();
});
afterEach(async () => {
  agent.asked.length = 0;
  expect(await world.faults()).toEqual([]);
  expect(world.errors).toEqual([]);
});

const ask = (more: object = {}) => ({ model: 'a2a/weather', messages: [{ role: 'user', content: 'rain?' }], ...more });
const PRICE = 2_000n;

test('answers in one piece, with its task, its tokens and what it cost', async () => {
  agent.says(() => [
    said('It '),
    said('rains.'),
    { type: 'data', data: { mm: 3 } },
    {
      type: 'file',
      file: { kind: 'file', mediaType: 'image/png', name: 'radar', url: 'https://example.com/a (1).png', bytes: null },
    },
    { finish: 'stop', taskId: 't-1', contextId: 'c-1', promptTokens: 7, completionTokens: 9 },
  ]);
  const before = await world.balance();
  const response = await world.chat(ask(), { 'x-receipt': '1' });
  expect(response.status).toBe(200);
  const body = await whole(response);
  const id = response.headers.get('x-generation-id');
  expect(body).toMatchObject({
    id,
    object: 'chat.completion',
    model: 'a2a/weather',
    choices: [
      {
        message: {
          role: 'assistant',
          content: 'It rains.\n\n```json\n{\n  "mm": 3\n}\n```\n\n![radar](https://example.com/a%20%281%29.png)',
        },
        finish_reason: 'stop',
      },
    ],
    usage: {
      prompt_tokens: 7,
      completion_tokens: 9,
      total_tokens: 16,
      cost: 0.002,
      cost_details: { charged_usd: '0.002' },
    },
    tollgate: { task_id: 't-1', context_id: 'c-1', state: 'completed' },
  });
  expect(response.headers.get('x-provider')).toBe('Agents');
  expect(response.headers.get('x-cost-usd')).toBe('0.002');
  expect(response.headers.get('x-receipt')).toMatch(/^ey/);
  expect(before.available - (await world.balance()).available).toBe(PRICE);
  const lock = await world.lock(id);
  expect(lock).toMatchObject({ state: 'settled', charged: PRICE });
  expect(JSON.parse(lock.lockDetail)).toMatchObject({ primitive: 'agent', service: 'weather' });
});

test('answers as a stream while it works, and ends it once the call is settled', async () => {
  const heard = Promise.withResolvers<void>();
  agent.says(async function* () {
    yield { type: 'progress', text: 'looking\nout' };
    yield said('It ');
    await heard.promise;
    yield said('rains.');
    yield { finish: 'stop', taskId: 't-2', contextId: 'c-2' };
  });
  const response = await world.chat(ask({ stream: true }));
  expect(response.headers.get('content-type')).toMatch(/^text\/event-stream/);
  expect(response.headers.get('x-provider')).toBe('Agents');
  const [one, other] = response.body!.tee();
  const reader = one.getReader();
  for (let text = ''; !text.includes('"It "');) text += new TextDecoder().decode((await reader.read()).value);
  heard.resolve();
  const { content, last, comments, chunks, done } = await streamed(new Response(other));
  expect(content).toBe('It rains.');
  expect(comments).toEqual(['looking out']);
  expect(chunks[0]!.choices[0]!.delta).toEqual({ role: 'assistant', content: '' });
  expect(done).toBe(true);
  expect(last).toMatchObject({
    choices: [{ delta: {}, finish_reason: 'stop' }],
    usage: { cost: 0.002 },
    tollgate: { task_id: 't-2', context_id: 'c-2', state: 'completed' },
  });
  expect(chunks.filter(({ usage }) => usage)).toHaveLength(1);
  expect(await world.lock(response.headers.get('x-generation-id'))).toMatchObject({ state: 'settled', charged: PRICE });
});

test('is asked with all roles, files and the context of its session', async () => {
  agent.says(() => [said('yes'), { finish: 'stop' }]);
  const response = await world.chat(
    ask({
      session_id: 'c-9',
      max_tokens: 20,
      tollgate: { task_id: 't-9' },
      messages: [
        { role: 'developer', content: 'be brief' },
        { role: 'assistant', content: 'hi' },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'look' },
            { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } },
            { type: 'file', file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,BBBB' } },
            { type: 'input_audio', input_audio: { data: 'CCCC', format: 'wav' } },
          ],
        },
      ],
    }),
  );
  expect(response.status).toBe(200);
  expect(agent.asked).toEqual([
    {
      turns: [
        { role: 'system', parts: [{ kind: 'text', text: 'be brief' }] },
        { role: 'assistant', parts: [{ kind: 'text', text: 'hi' }] },
        {
          role: 'user',
          parts: [
            { kind: 'text', text: 'look' },
            { kind: 'file', mediaType: 'image/png', name: null, url: null, bytes: 'AAAA' },
            { kind: 'file', mediaType: 'application/pdf', name: 'a.pdf', url: null, bytes: 'BBBB' },
            { kind: 'file', mediaType: 'audio/wav', name: null, url: null, bytes: 'CCCC' },
          ],
        },
      ],
      arguments: null,
      contextId: expect.stringMatching(/^session-[0-9a-f]{40}$/),
      taskId: 't-9',
      maxTokens: 20,
      stream: false,
    },
  ]);
});

test('its question is its answer, and the task waits', async () => {
  agent.says(() => [said('Which city?'), { finish: 'input', taskId: 't-3', contextId: 'c-3' }]);
  expect(await whole(await world.chat(ask()))).toMatchObject({
    choices: [{ message: { content: 'Which city?' }, finish_reason: 'stop' }],
    tollgate: { task_id: 't-3', state: 'input-required' },
  });
});

test.each([false, true])('its failure is an error that costs nothing, streamed: %s', async (stream) => {
  agent.says(() => [said('I tried'), { finish: 'failed', error: 'no clouds', taskId: 't-4' }]);
  const before = await world.balance();
  const response = await world.chat(ask({ stream }));
  const error = { message: 'a2a/weather failed: no clouds', type: 'provider_unavailable', code: 500, param: null };
  const usage = { cost: 0 };
  if (stream) {
    const { content, last } = await streamed(response);
    expect(content).toBe('I tried');
    expect(last).toMatchObject({ choices: [{ finish_reason: 'error' }], error, usage, tollgate: { state: 'failed' } });
  } else
    expect(await whole(response)).toMatchObject({
      choices: [{ message: { content: 'I tried' }, finish_reason: 'error' }],
      error,
      usage,
    });
  expect((await world.balance()).available).toBe(before.available);
  expect(await world.lock(response.headers.get('x-generation-id'))).toMatchObject({ state: 'settled', charged: 0n });
});

test.each([false, true])('one that breaks off has failed and costs nothing, streamed: %s', async (stream) => {
  const heard = Promise.withResolvers<void>();
  agent.says(async function* () {
    yield said('I ');
    await heard.promise;
    throw new Error('gone');
  });
  const before = await world.balance();
  const asked = world.chat(ask({ stream }));
  if (stream) {
    const response = await asked;
    heard.resolve();
    const { last, done } = await streamed(response);
    expect(last).toMatchObject({ choices: [{ finish_reason: 'error' }], error: { type: 'provider_unavailable' } });
    expect(done).toBe(false);
  } else {
    heard.resolve();
    expect((await asked).status).toBe(500);
  }
  expect(world.errors.splice(0)).toHaveLength(stream ? 1 : 0);
  await world.quiet();
  expect((await world.balance()).available).toBe(before.available);
});

test('a repeated request is answered once, and charged once', async () => {
  agent.says(() => [said('once'), { finish: 'stop' }]);
  const before = await world.balance();
  const key = { 'idempotency-key': 'agent-1' };
  const first = await world.chat(ask(), key);
  const again = await world.chat(ask(), key);
  expect(await again.text()).toBe(await first.text());
  expect(again.headers.get('idempotent-replayed')).toBe('true');
  expect(agent.asked).toHaveLength(1);
  expect(before.available - (await world.balance()).available).toBe(PRICE);
});

test('a client that leaves a stream pays for what comes to its end in time', async () => {
  const left = Promise.withResolvers<void>();
  agent.says(async function* () {
    yield said('I ');
    await left.promise;
    yield said('go on');
    yield { finish: 'stop' };
  });
  const before = await world.balance();
  const leaving = new AbortController();
  const response = await world.chat(ask({ stream: true }), {}, leaving.signal);
  const id = response.headers.get('x-generation-id');
  await response.body!.getReader().read();
  leaving.abort();
  left.resolve();
  await world.quiet();
  expect(await world.lock(id)).toMatchObject({ state: 'settled', charged: PRICE });
  expect(before.available - (await world.balance()).available).toBe(PRICE);
});

test('a stream of one that says nothing for long begins all the same', async () => {
  const slow = await startWorld({ toml: agentToml(agent.url) + UNHURRIED, agents: agent.target, keepAliveMs: 20 });
  const begun = Promise.withResolvers<void>();
  agent.says(async function* () {
    await begun.promise;
    yield said('at last');
    yield { finish: 'stop' };
  });
  const response = await slow.chat(ask({ stream: true }));
  expect(response.status).toBe(200);
  begun.resolve();
  const { content, comments } = await streamed(response);
  expect(content).toBe('at last');
  expect(comments).toContain('keep-alive');
  await slow.stop();
});

test('a model of exactly that name goes first', async () => {
  const response = await world.chat({ ...ask(), model: 'a2a/shadow' });
  // The agent's server is no model: that it was asked as one shows who was called.
  expect(response.status).toBe(500);
  const details = await Promise.all(
    (await world.locks()).map(
      async (id) => JSON.parse((await world.lock(id)).lockDetail) as { primitive: string; service: string },
    ),
  );
  expect(details).toContainEqual(expect.objectContaining({ primitive: 'model', service: 'a2a/shadow' }));
});

test.each([
  ['n', { n: 2 }, 'n'],
  ['tools', { tools: [{ type: 'function', function: { name: 'f' } }] }, 'tools'],
  ['a format', { response_format: { type: 'json_object' } }, 'response_format'],
  ['fallbacks', { models: ['test/model'] }, 'models'],
  ['a stop', { stop: ['x'] }, 'stop'],
  [
    'a tool message',
    {
      messages: [
        { role: 'tool', content: 'x' },
        { role: 'user', content: 'y' },
      ],
    },
    'messages[0].role',
  ],
  [
    'the last word of the assistant',
    {
      messages: [
        { role: 'user', content: 'x' },
        { role: 'assistant', content: 'y' },
      ],
    },
    'messages[1].role',
  ],
  ['nothing', { messages: [{ role: 'user', content: '' }] }, 'messages[0].content'],
  [
    'a stored file',
    { messages: [{ role: 'user', content: [{ type: 'file', file: { file_id: 'f-1' } }] }] },
    'messages[0].content[0].file.file_id',
  ],
  [
    'a part of no known type',
    { messages: [{ role: 'user', content: [{ type: 'hologram' }] }] },
    'messages[0].content[0].type',
  ],
])('is not asked for what it cannot do: %s', async (_what, more, param) => {
  const response = await world.chat(ask(more));
  expect(response.status).toBe(400);
  expect((await whole(response)).error).toMatchObject({ type: 'invalid_request', param });
  expect(agent.asked).toEqual([]);
});

test('an unknown agent is not found, one that costs more than the client allows is not asked', async () => {
  const unknown = await world.chat(ask({ model: 'a2a/nobody' }));
  expect(unknown.status).toBe(404);
  const dear = await world.chat(ask({ max_cost: '0.001' }));
  expect(dear.status).toBe(422);
  expect((await whole(dear)).error).toMatchObject({
    type: 'unprocessable',
    message: 'max_cost is 0.001 USD, but weather may cost 0.002 USD',
  });
  expect(agent.asked).toEqual([]);
});
