import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { GatewayError } from '#errors';
import { type ContentTurn, type TargetRequest, textOf } from '#bridge';
import { startProvider, type TestProvider } from '../../../support/provider.ts';
import { startScriptedModel, type ScriptedModel } from './support/scripted-model.ts';
import { modelToml, UNHURRIED } from './support/toml.ts';
import { startWorld, type World } from './support/world.ts';

// A chat model that is spoken to in parts: the endings, estimates and accounts of a chat call, whatever route it is
// behind.

let provider: TestProvider;
let scripted: ScriptedModel;
let world: World;
beforeAll(async () => {
  provider = await startProvider();
  scripted = await startScriptedModel();
  world = await startWorld({ toml: modelToml(provider.url) + modelToml(scripted.url, 'scripted/model') + UNHURRIED });
});
afterAll(async () => {
  await world.stop();
  await provider.stop();
  await scripted.stop();
});
afterEach(async () => {
  expect(await world.faults()).toEqual([]);
});

const turn = (text: string, role: ContentTurn['role'] = 'user'): ContentTurn => ({
  role,
  parts: [{ kind: 'text', text }],
});
const asking = (turns: readonly ContentTurn[], more: Partial<TargetRequest> = {}): TargetRequest => ({
  turns,
  arguments: null,
  contextId: null,
  taskId: null,
  maxTokens: 50,
  stream: true,
  ...more,
});
const say = (text: string, more: Partial<TargetRequest> = {}) =>
  world.say(world.targets.model, 'test/model', asking([turn(text)], more));
const wordsOf = ({ events }: Awaited<ReturnType<typeof say>>) =>
  events.map((event) => (event.type === 'text-delta' ? textOf(event) : '')).join('');

test('says its words as parts, and what it used', async () => {
  const before = await world.balance();
  const heard = await say('hello !tokens:4');
  expect(wordsOf(heard)).toBe('the toll is paid ');
  expect(heard.events.length).toBeGreaterThan(1);
  const { promptTokens } = provider.log.at(-1)!;
  expect(heard.end).toEqual({
    finish: 'stop',
    error: null,
    taskId: null,
    contextId: null,
    promptTokens,
    completionTokens: 4,
  });
  expect(heard.charged).toBe(BigInt(promptTokens + 8));
  expect(before.available - (await world.balance()).available).toBe(heard.charged);
  expect(JSON.parse((await world.lock(heard.id)).lockDetail)).toMatchObject({
    primitive: 'model',
    service: 'test/model',
  });
});

test.each([
  ['its stream ends with the words', '!tokens:3 !usage-place:finish'],
  ['its last event is not ended', '!tokens:3 !no-done'],
  ['its finish comes beside', '!tokens:3 !finish:beside'],
])('nothing of what it says is lost: %s', async (_what, commands) => {
  expect(wordsOf(await say(`hello ${commands}`))).toBe('the toll is ');
});

const chunk = (delta: object, finish: string | null = null) =>
  `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason: finish }] })}`;
const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 };
const whole = {
  choices: [{ index: 0, message: { role: 'assistant', content: 'all at once' }, finish_reason: 'stop' }],
  usage,
};
const PIXEL = { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } };

test.each([
  ['a reply in one piece', 'application/json', JSON.stringify(whole), 'all at once'],
  [
    'words beside the finish',
    'text/event-stream',
    `${chunk({ content: 'a ' })}\n\n${chunk({ content: 'b' }, 'stop')}\n\ndata: [DONE]\n\n`,
    'a b',
  ],
  [
    'an end that is cut short',
    'text/event-stream',
    `${chunk({ content: 'a ' })}\n\n${chunk({ content: 'b' }, 'stop')}`,
    'a b',
  ],
  ['a refusal', 'text/event-stream', `${chunk({ refusal: 'no' }, 'stop')}\n\ndata: [DONE]\n\n`, 'no'],
  [
    'thoughts, which are none of its words',
    'text/event-stream',
    `${chunk({ reasoning: 'hm' })}\n\n${chunk({ content: 'b' }, 'stop')}\n\n`,
    'b',
  ],
])('whatever shape it comes in is told: %s', async (_what, type, text, told) => {
  scripted.says({ raw: { type, text } });
  const heard = await world.say(world.targets.model, 'scripted/model', asking([turn('x')]));
  expect(wordsOf(heard)).toBe(told);
  expect(heard.end.finish).toBe('stop');
});

test('an image that it makes is a file', async () => {
  scripted.says({
    raw: {
      type: 'text/event-stream',
      text: `${chunk({ images: [PIXEL] })}\n\n${chunk({}, 'stop')}\n\ndata: [DONE]\n\n`,
    },
  });
  const heard = await world.say(world.targets.model, 'scripted/model', asking([turn('x')]));
  expect(heard.events).toEqual([
    { type: 'file', file: { kind: 'file', mediaType: 'image/png', name: null, url: null, bytes: 'AAAA' } },
  ]);
});

test('is asked with all turns, data as JSON and images', async () => {
  await world.say(
    world.targets.model,
    'test/model',
    asking(
      [
        turn('be brief', 'system'),
        turn('hi', 'assistant'),
        {
          role: 'user',
          parts: [
            { kind: 'text', text: 'look' },
            { kind: 'data', data: { a: [1] } },
            { kind: 'file', mediaType: 'image/png', name: null, url: null, bytes: 'AAAA' },
            { kind: 'file', mediaType: null, name: null, url: 'https://example.com/a.JPG?x=1', bytes: null },
          ],
        },
      ],
      { maxTokens: 7, contextId: 'c-1' },
    ),
  );
  const body = provider.log.at(-1)!.body as Record<string, unknown>;
  expect(body).toMatchObject({
    max_tokens: 7,
    stream: true,
    messages: [
      { role: 'system', content: 'be brief' },
      { role: 'assistant', content: 'hi' },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'look' },
          { type: 'text', text: '{"a":[1]}' },
          { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } },
          { type: 'image_url', image_url: { url: 'https://example.com/a.JPG?x=1' } },
        ],
      },
    ],
  });
  expect(body).not.toHaveProperty('session_id');
});

describe('ends as a chat call does', () => {
  test('at its cap', async () => {
    const heard = await say('hello !tokens:20', { maxTokens: 3 });
    expect(heard.end).toMatchObject({ finish: 'length', completionTokens: 3 });
    expect(wordsOf(heard)).toBe('the toll is ');
  });

  test('past its cap: cut, and it costs the tokens that are shown', async () => {
    const heard = await say('hello !tokens:20000 !ignore-max', { maxTokens: 5 });
    expect(heard.end.finish).toBe('length');
    expect(heard.end.completionTokens).toBe(5);
    const { charged, amount } = await world.lock(heard.id);
    expect(charged).toBe(BigInt(heard.end.promptTokens + 2 * 5));
    expect(charged).toBeLessThan(amount);
  });

  test('by its own words failed: free', async () => {
    const heard = await say('hello !tokens:2 !finish:error');
    expect(heard.end).toMatchObject({ finish: 'failed', error: 'the model ended with an error' });
    expect(heard.charged).toBe(0n);
  });

  test('with nothing said: free', async () => {
    await expect(say('hello !tokens:0 !finish:missing')).rejects.toMatchObject({ code: 'provider_unavailable' });
  });

  test('without usage: free', async () => {
    const heard = await say('hello !tokens:4 !usage:none');
    expect(heard.end.finish).toBe('stop');
    expect(heard.charged).toBe(0n);
  });

  test('broken off: an error, free', async () => {
    const before = await world.balance();
    await expect(say('hello !tokens:9 !cut:400')).rejects.toMatchObject({ code: 'provider_unavailable' });
    await world.quiet();
    expect((await world.balance()).available).toBe(before.available);
  });

  test('left by its asker: what came, as measured', async () => {
    const gone = new AbortController();
    const ask = asking([turn('hello !tokens:50 !token-ms:60')]);
    const { id, charged } = await world.say(world.targets.model, 'test/model', ask, gone.signal, () => gone.abort());
    expect(charged).toBeGreaterThan(0n);
    expect(JSON.parse((await world.lock(id)).detail!)).toMatchObject({ estimated: true });
  });
});

test.each([
  ['a document', { kind: 'file', mediaType: 'application/pdf', name: 'a.pdf', url: null, bytes: 'AAAA' }],
  [
    'an image that is not at a safe place',
    { kind: 'file', mediaType: 'image/png', name: null, url: 'http://example.com/a.png', bytes: null },
  ],
  ['a file of no known kind', { kind: 'file', mediaType: null, name: null, url: 'https://example.com/a', bytes: null }],
] as const)('takes images alone: not %s', async (_what, part) => {
  const asked = world.say(world.targets.model, 'test/model', asking([{ role: 'user', parts: [part] }]));
  await expect(asked).rejects.toMatchObject({
    code: 'unprocessable',
    message: expect.stringContaining('it takes images') as string,
  });
});

test('names an image whose bytes are no base64', async () => {
  const part = { kind: 'file', mediaType: 'image/png', name: 'a.png', url: null, bytes: 'A"}' } as const;
  const asked = world.say(world.targets.model, 'test/model', asking([{ role: 'user', parts: [part] }]));
  await expect(asked).rejects.toMatchObject({
    code: 'invalid_request',
    message: 'The bytes of the file "a.png", "image/png" are not base64',
  });
});

test('is known by its name', async () => {
  const { model } = world.targets;
  expect(model.has('test/model')).toBe(true);
  expect(model.has('nobody')).toBe(false);
  expect(model.list(1)).toEqual([{ name: 'scripted/model', displayName: 'Model', description: '' }]);
  expect(model.list(9).map(({ name }) => name)).toEqual(['scripted/model', 'test/model']);
  const unknown = model.toCall('nobody', asking([turn('x')]), {
    caller: { account: world.account, key: null, wallet: null },
    requestId: '',
    traceparent: null,
    wantsReceipt: false,
  });
  await expect(unknown).rejects.toBeInstanceOf(GatewayError);
  await expect(unknown).rejects.toMatchObject({ code: 'invalid_model' });
});
