import { createOpenAI } from '@ai-sdk/openai';
import { generateText, isStepCount, type ModelMessage, streamText, tool } from 'ai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { until } from '../../support/cluster.ts';
import { modelBlock, startSpine, UNHURRIED, type Spine } from '../../support/spine.ts';
import {
  completion,
  startTranscripts,
  words,
  type TranscriptUpstream,
} from '../translated/support/transcript-upstream.ts';
import { response, RESPONSE_USAGE } from './support/transcripts.ts';
import { event, startWireUpstream, type WireUpstream } from './support/wire-upstream.ts';

// What the gateway keeps of a provider that speaks the Responses API, where nothing is stored at the provider. The
// default model of Vercel's AI SDK refers to earlier items by their ids.

const NATIVE = 'acme/native';
const SIMPLE = 'acme/simple';
const CHAT = 'acme/chat';
let upstream: WireUpstream;
let simple: WireUpstream;
let chat: TranscriptUpstream;
let spine: Spine;
beforeAll(async () => {
  [upstream, simple, chat] = await Promise.all([startWireUpstream(), startWireUpstream(), startTranscripts()]);
  const params = 'wires = ["responses"]';
  spine = await startSpine({
    toml:
      UNHURRIED +
      modelBlock({ name: NATIVE, provider: 'Acme', url: upstream.url, params }) +
      modelBlock({ name: SIMPLE, provider: 'Acme', url: simple.url, params }) +
      modelBlock({ name: CHAT, provider: 'Acme', url: chat.url }),
  });
});
afterAll(async () => {
  try {
    expect(await spine.faults()).toEqual([]);
  } finally {
    await spine.stop();
    await Promise.all([upstream.stop(), simple.stop(), chat.stop()]);
  }
});

const post = async (body: object) => {
  const reply = await spine.post('/responses', { max_output_tokens: 50, ...body });
  return { status: reply.status, body: (await reply.json()) as Record<string, unknown> };
};
const reached = () => upstream.reached.at(-1)!.body;

const MESSAGE = (id: string, text: string) => ({
  type: 'message',
  id,
  role: 'assistant',
  status: 'completed',
  content: [{ type: 'output_text', text, annotations: [] }],
});
const THOUGHT = { type: 'reasoning', id: 'rs_up', summary: [], encrypted_content: 'gAAAAB-theirs' };
const CALL = {
  type: 'function_call',
  id: 'fc_up',
  call_id: 'call_1',
  name: 'weather',
  arguments: '{"city":"Oslo"}',
  status: 'completed',
};

/** A response with this output, in the form that the request asks for. */
function says(
  stream: unknown,
  output: readonly { readonly id: string; readonly content?: readonly { readonly text: string }[] }[],
): string {
  if (stream !== true) return response({ output });
  const base = {
    id: 'resp_up',
    object: 'response',
    created_at: 1,
    model: 'upstream-model-2026',
    error: null,
    store: false,
  };
  const items = output.flatMap((item, output_index) => [
    event('response.output_item.added', { output_index, item: { ...item, content: [] } }),
    ...(item.content
      ? [
          event('response.output_text.delta', {
            item_id: item.id,
            output_index,
            content_index: 0,
            delta: item.content[0]!.text,
          }),
        ]
      : []),
    event('response.output_item.done', { output_index, item }),
  ]);
  return [
    event('response.created', { response: { ...base, status: 'in_progress', output: [], usage: null } }),
    ...items,
    event('response.completed', { response: { ...base, status: 'completed', output, usage: RESPONSE_USAGE } }),
  ].join('');
}

describe('a response in the background', () => {
  const shown = async (id: string) => (await (await spine.get(`/responses/${id}`)).json()) as Record<string, unknown>;
  const ask = (more: object = {}) =>
    post({ model: NATIVE, input: 'Hi', metadata: { a: 'b' }, background: true, ...more });

  test('is an ordinary stream of its provider', async () => {
    upstream.answer = ({ body }) => ({ text: says(body['stream'], [MESSAGE('msg_b', 'Good morning')]) });
    const { body } = await ask();
    expect(body).toMatchObject({ status: 'queued', background: true, model: NATIVE, metadata: { a: 'b' } });
    const id = body['id'] as string;
    await until(async () => (await shown(id))['status'] === 'completed', 'it has ended');
    expect(reached()).toMatchObject({ stream: true, store: false });
    expect(reached()).not.toHaveProperty('background');
    expect(await shown(id)).toMatchObject({
      id,
      background: true,
      store: true,
      metadata: { a: 'b' },
      output: [{ id: 'msg_b', status: 'completed' }],
      usage: { cost: expect.any(Number) },
    });
    const continued = await post({
      model: NATIVE,
      input: [
        { type: 'item_reference', id: 'msg_b' },
        { role: 'user', content: 'more' },
      ],
    });
    expect(continued.status).toBe(200);
  });

  test('has numbered events, although its provider sends none', async () => {
    upstream.answer = ({ body }) => ({ text: says(body['stream'], [MESSAGE('msg_n', 'Good morning')]) });
    const reply = await spine.post('/responses', { model: NATIVE, input: 'Hi', background: true, stream: true });
    const events = (await reply.text())
      .split('\n\n')
      .filter((one) => one !== '')
      .map((one) => JSON.parse(one.slice(one.indexOf('data: ') + 6)) as { type: string; sequence_number: number });
    expect(events.map(({ sequence_number: number }) => number)).toEqual(events.map((_, at) => at));
    expect(events.map(({ type }) => type)).toEqual([
      'response.created',
      'response.queued',
      'response.output_item.added',
      'response.output_text.delta',
      'response.output_item.done',
      'response.completed',
    ]);
  });

  test('shows what came until it was cancelled', async () => {
    const whole = says(true, [MESSAGE('msg_1', 'The first'), MESSAGE('msg_2', 'The second')]);
    const at = whole.lastIndexOf('event: response.output_item.done');
    const rest = Promise.withResolvers<string>();
    upstream.answer = () => ({ text: whole.slice(0, at), rest: rest.promise });
    const { body } = await ask();
    const id = body['id'] as string;
    await until(async () => (await shown(id))['status'] === 'in_progress', 'it has begun');
    const cancelled = (await (await spine.post(`/responses/${id}/cancel`, {})).json()) as Record<string, unknown>;
    expect(cancelled).toMatchObject({
      status: 'cancelled',
      output: [
        { id: 'msg_1', status: 'completed' },
        { id: 'msg_2', status: 'incomplete', content: [{ type: 'output_text', text: 'The second' }] },
      ],
    });
    // It is read on, as for any client that leaves, and then has its cost.
    expect(cancelled['usage']).toBeNull();
    rest.resolve(whole.slice(at));
    await until(async () => (await shown(id))['usage'] !== null, 'it is settled');
    expect(((await shown(id))['usage'] as { cost: number }).cost).toBeGreaterThan(0);
  });
});

describe('the response', () => {
  test.each([false, true])('is told as one of this gateway, stream: %j', async (stream) => {
    upstream.answer = ({ body }) => ({ text: says(body['stream'], [MESSAGE('msg_1', 'Good morning')]) });
    const asked = { model: NATIVE, max_output_tokens: 50, input: 'Hi', stream, metadata: { a: 'b' } };
    const reply = await spine.post('/responses', asked);
    const text = await reply.text();
    expect(text).not.toContain('resp_up');
    const id = /"id":"(resp_\w+)"/.exec(text)![1]!;
    expect(reached()).toMatchObject({ store: false, include: ['reasoning.encrypted_content'] });
    expect(reached()).not.toHaveProperty('metadata');
    const shown = await (await spine.get(`/responses/${id}`)).json();
    expect(shown).toMatchObject({
      id,
      store: true,
      model: NATIVE,
      metadata: { a: 'b' },
      output: [{ id: 'msg_1' }],
      usage: { input_tokens_details: { cached_tokens: 20, cache_write_tokens: 0 }, cost: expect.any(Number) },
    });
    const events = stream ? text.split('\n\n').filter((one) => one.includes('"response":')) : [text];
    for (const one of events) expect(one).toContain('"store":true');
  });

  test('is continued with its thinking', async () => {
    upstream.answer = () => ({ text: response({ output: [THOUGHT, MESSAGE('msg_2', 'Good morning')] }) });
    const { body } = await post({ model: NATIVE, input: 'Hi' });
    const continued = await post({ model: NATIVE, input: 'more', previous_response_id: body['id'] });
    expect(continued.body).toMatchObject({ previous_response_id: body['id'] });
    const { id: _id, ...said } = MESSAGE('msg_2', 'Good morning');
    expect(reached()['input']).toEqual([
      { type: 'message', role: 'user', content: 'Hi' },
      THOUGHT,
      said,
      { type: 'message', role: 'user', content: 'more' },
    ]);
    expect(reached()).not.toHaveProperty('previous_response_id');
    // A model of chat gets the text alone.
    chat.answer = () => ({ body: completion({ content: 'translated' }) });
    expect((await post({ model: CHAT, input: 'more', previous_response_id: body['id'] })).status).toBe(200);
    expect(chat.asked.at(-1)!['messages']).toMatchObject([
      { content: 'Hi' },
      { content: 'Good morning' },
      { content: 'more' },
    ]);
  });

  test('has messages of its own ids, also where the answer is cut to its cap', async () => {
    const said = ['one', 'two'].map(
      (word) => word + Array.from({ length: 4_000 }, (_, at) => ` ${at * 7919}`).join(''),
    );
    const ids: unknown[] = [];
    for (const text of said) {
      upstream.answer = () => ({ text: response({ output: [MESSAGE('msg_long', text)] }) });
      const { body } = await post({ model: NATIVE, input: 'Hi', max_output_tokens: 16 });
      expect(body).toMatchObject({ status: 'incomplete', store: true });
      ids.push((body['output'] as { id: string }[])[0]!.id);
    }
    expect(new Set(ids).size).toBe(2);
    upstream.answer = () => ({ text: response({ output: [MESSAGE('msg_short', 'Good')] }) });
    const input = [
      { type: 'item_reference', id: ids[0] },
      { role: 'user', content: 'more' },
    ];
    expect((await post({ model: NATIVE, input })).status).toBe(200);
    const [first] = reached()['input'] as { content: { text: string }[] }[];
    expect(first!.content[0]!.text.startsWith('one')).toBe(true);
  });

  test('of a model that has no thinking is asked for without it, from the second request on at once', async () => {
    const message = 'Encrypted content is not supported with this model.';
    simple.answer = ({ body }) =>
      body['include'] === undefined
        ? { text: response({ output: [MESSAGE('msg_3', 'ok')] }) }
        : {
            status: 400,
            text: JSON.stringify({ error: { message, type: 'invalid_request_error', param: 'include' } }),
          };
    expect((await post({ model: SIMPLE, input: 'Hi' })).status).toBe(200);
    expect(simple.reached.length).toBe(2);
    expect((await post({ model: SIMPLE, input: 'Hi' })).status).toBe(200);
    expect(simple.reached.length).toBe(3);
    // A client that asks for it itself is told that there is none.
    const asked = await post({ model: SIMPLE, input: 'Hi', include: ['reasoning.encrypted_content'] });
    expect(asked).toMatchObject({ status: 400, body: { error: { message: expect.stringContaining(message) } } });
  });
});

describe.each([
  ['a provider of chat', CHAT],
  ['a provider that speaks the API', NATIVE],
])("the AI SDK's default model at %s", (_where, name) => {
  const model = () => createOpenAI({ baseURL: spine.url, apiKey: spine.key })(name);
  const lastInput = () =>
    name === CHAT
      ? (chat.asked.at(-1)!['messages'] as { content: string }[]).map(({ content }) => content)
      : (reached()['input'] as { content: string | { text: string }[] }[]).map(({ content }) =>
          typeof content === 'string' ? content : content[0]!.text,
        );
  let made = 0;
  const answerWith = (text: string) => {
    chat.answer = ({ stream }) => (stream ? { chunks: words(text) } : { body: completion({ content: text }) });
    upstream.answer = ({ body }) => ({ text: says(body['stream'], [MESSAGE(`msg_of_turn_${made++}`, text)]) });
  };

  test('has a conversation of three turns', async () => {
    const messages: ModelMessage[] = [{ role: 'user', content: 'Hi' }];
    answerWith('Good morning');
    const first = await generateText({ model: model(), messages });
    messages.push(...first.response.messages, { role: 'user', content: 'again' });
    answerWith('Good evening');
    const second = streamText({ model: model(), messages });
    expect(await second.text).toBe('Good evening');
    messages.push(...(await second.response).messages, { role: 'user', content: 'once more' });
    const third = await generateText({ model: model(), messages });
    expect(third.text).toBe('Good evening');
    expect(lastInput()).toEqual(['Hi', 'Good morning', 'again', 'Good evening', 'once more']);
  });
});

test("a loop of tools with thinking, by the AI SDK's default model", async () => {
  upstream.answer = ({ body }) => {
    const input = body['input'] as { type?: string }[];
    const isFirst = !input.some(({ type }) => type === 'function_call_output');
    return { text: says(body['stream'], isFirst ? [THOUGHT, CALL] : [MESSAGE('msg_4', 'It is sunny')]) };
  };
  const weather = tool({ inputSchema: z.object({ city: z.string() }), execute: ({ city }) => `sunny in ${city}` });
  const { text } = await generateText({
    model: createOpenAI({ baseURL: spine.url, apiKey: spine.key })(NATIVE),
    prompt: 'Weather?',
    tools: { weather },
    stopWhen: isStepCount(3),
  });
  expect(text).toBe('It is sunny');
  const { id: _id, status: _status, ...called } = CALL;
  expect(reached()['input']).toMatchObject([
    { role: 'user' },
    THOUGHT,
    called,
    { type: 'function_call_output', call_id: 'call_1' },
  ]);
});
