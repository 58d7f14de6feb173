import { OutputSize } from '../../../src/openai/native/output-size.ts';
import { describe, expect, test } from 'vitest';
import { createMessagesDecoder } from '../../../src/openai/messages/passthrough.ts';
import { createResponsesDecoder } from '../../../src/openai/responses/passthrough.ts';
import { NativeReplyReader } from '../../../src/openai/native/native-reply-reader.ts';
import { outputBytesMax } from '../../../src/openai/chat/reply/output-bound.ts';
import type { NativeEnd } from '../../../src/openai/native/passthrough.ts';
import { modelBlock, UNHURRIED } from '../../support/spine.ts';
import { CONTEXT } from '../support/replies.ts';
import { message, MESSAGE_USAGE, messageEvents, response } from './support/transcripts.ts';
import { event, startWireUpstream } from './support/wire-upstream.ts';
import { ofFile, spineOfFile } from '../../support/of-file.ts';

const NATIVE = 'acme/native';
const upstream = ofFile(startWireUpstream, (one) => one.stop());
const spine = spineOfFile(() => {
  const native = { provider: 'Acme', url: upstream.url, params: 'wires = ["messages", "responses"]' };
  return { toml: UNHURRIED + modelBlock({ name: NATIVE, ...native }) };
});

const post = (path: string, body: object) =>
  fetch(`${spine.url}/${path}`, {
    method: 'POST',
    headers: { 'x-api-key': spine.key, 'content-type': 'application/json' },
    body: JSON.stringify({ model: NATIVE, ...body }),
  });
const ask = (more: object) =>
  post('messages', { max_tokens: 50, messages: [{ role: 'user', content: 'Hi' }], ...more });

const CUT: NativeEnd = { cost: {}, usage: {}, isCorrected: false, cut: null, isBroken: true };

describe('a reply that says nothing, nor why it ended, has failed and is free', () => {
  test('in one piece', async () => {
    upstream.answer = () => ({ text: message({ content: [], stop_reason: null }) });
    const reply = await ask({});
    expect(reply.status).toBe(500);
    await reply.text();
    expect(await spine.generation(reply.headers.get('x-generation-id'))).toMatchObject({ cost_micro_usdc: 0 });
  });

  test('in a stream', async () => {
    upstream.answer = () => ({ text: messageEvents()[0]! + event('message_stop', {}) });
    const reply = await ask({ stream: true });
    expect(await reply.text()).toContain('without an answer');
    expect(await spine.generation(reply.headers.get('x-generation-id'))).toMatchObject({ cost_micro_usdc: 0 });
  });

  test.each(['in_progress', 'queued', 'paused'])('and so does a response of the status %s', async (status) => {
    const output = [{ type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'Half' }] }];
    upstream.answer = () => ({ text: JSON.stringify({ id: 'r', object: 'response', status, output, usage: null }) });
    const reply = await post('responses', { input: 'Hi', store: false });
    expect(reply.status).toBe(500);
    await reply.text();
    expect(await spine.generation(reply.headers.get('x-generation-id'))).toMatchObject({ cost_micro_usdc: 0 });
  });
});

test('a stream that is cut before its first event ends with an error', async () => {
  // Texts of other letters than ASCII have a bound of their own.
  const large = 'é'.repeat(2 * 1024 * 1024);
  const said = event('message_start', { message: { large } });
  upstream.answer = () => ({ text: said + event('message_stop', {}) });
  const reply = await ask({ stream: true });
  const text = await reply.text();
  expect([...text.matchAll(/^event: (.*)$/gm)].map(([, name]) => name)).toEqual(['message_start', 'ping', 'error']);
  expect(text).toContain('The reply was cut');
});

describe('a reply in one piece', () => {
  const line = (text: string) => text.repeat(100_000 / text.length);
  const said = (path: string, text: string) => {
    if (path.endsWith('messages')) return { text: message({ content: [{ type: 'text', text }] }) };
    const content = [{ type: 'output_text', text, annotations: [] }];
    return { text: response({ output: [{ type: 'message', id: 'msg_1', role: 'assistant', content }] }) };
  };

  test.each([
    ['messages', 'within its cap where it is one run', line('-'), []],
    ['responses', 'within its cap where it is one run', line('-'), []],
    ['messages', 'beyond its cap where it is words', line('every word differs '), ['over_cap']],
    ['responses', 'beyond its cap where it is words', line('every word differs '), ['over_cap']],
  ] as const)('of %s is %s', async (wire, _name, text, flags) => {
    upstream.answer = ({ path }) => said(path, text);
    const input = [{ role: 'user', content: 'Hi' }];
    const reply = await post(wire, { max_tokens: 2000, messages: input, max_output_tokens: 2000, input });
    expect((await reply.text()).includes(text)).toBe(flags.length === 0);
    expect(await spine.generation(reply.headers.get('x-generation-id'))).toMatchObject({ flags });
  });

  test.each([
    ['messages', createMessagesDecoder],
    ['responses', createResponsesDecoder],
  ] as const)('of %s beyond its cap is cut in bytes, between characters', (wire, speechOf) => {
    const reader = new NativeReplyReader(CONTEXT, speechOf('acme/small'));
    reader.head(200, {});
    const most = outputBytesMax(CONTEXT.budget);
    const text = Array.from({ length: most }, (_, at) => String.fromCodePoint(0x4e00 + (at % 20_000))).join('');
    reader.data([Buffer.from(said(wire, `a🌍${text}`).text)]);
    const end = reader.end().result.native!({ cost: 1 }, null);
    const [given] = /a🌍[^"]*/.exec(end)!;
    expect(Buffer.byteLength(given)).toBeLessThanOrEqual(most);
    expect(Buffer.byteLength(given)).toBeGreaterThan(most - 4);
    expect(`a🌍${text}`.startsWith(given)).toBe(true);
  });
});

test('a picture that a response made is one, in an item of a stream and of a whole reply', () => {
  const item = { type: 'image_generation_call', id: 'ig_1', status: 'completed', result: 'iVBORAAA' };
  const decoder = createResponsesDecoder('m');
  const size = new OutputSize();
  decoder.addSize('response.output_item.done', { item }, size);
  expect(size).toMatchObject({ pictures: 1, soundBytes: 0 });
  decoder.takeWhole(JSON.parse(response({ output: [item] })) as Record<string, unknown>, size);
  expect(size).toMatchObject({ pictures: 2, soundBytes: 0 });
});

// A run in what is not counted buys nothing for the words beside it.
describe('words beyond the cap beside a long run of data', () => {
  const words = 'every word differs '.repeat(6000);
  const run = 'A'.repeat(200_000);
  const messageWith = { content: [{ type: 'web_search_tool_result', tool_use_id: 't', content: run }] };
  const responseWith = { type: 'image_generation_call', id: 'ig_1', status: 'completed', result: run };
  const said = { type: 'message', id: 'msg_1', role: 'assistant', content: [{ type: 'output_text', text: words }] };
  test.each([
    ['messages', () => message({ content: [...messageWith.content, { type: 'text', text: words }] })],
    ['responses', () => response({ output: [responseWith, said] })],
  ])('of %s are over it', async (wire, text) => {
    upstream.answer = () => ({ text: text() });
    const input = [{ role: 'user', content: 'Hi' }];
    const reply = await post(wire, { max_tokens: 2000, messages: input, max_output_tokens: 2000, input });
    await reply.text();
    expect(await spine.generation(reply.headers.get('x-generation-id'))).toMatchObject({ flags: ['over_cap'] });
  });

  test('are over it in a stream', async () => {
    const delta = { type: 'text_delta', text: words.slice(0, 1000) };
    const event1 = event('content_block_delta', { index: 0, delta, note: run.slice(0, 2000) });
    const [start, open] = messageEvents();
    upstream.answer = () => ({ text: start! + open! + event1.repeat(120) + messageEvents().slice(-3).join('') });
    const reply = await ask({ max_tokens: 2000, stream: true });
    await reply.text();
    const generation = await spine.generation(reply.headers.get('x-generation-id'));
    expect(generation).toMatchObject({ flags: ['over_cap'], tokens_completion: 2000 });
    expect(generation.cost_micro_usdc).toBe(generation.tokens_prompt + 2 * 2000);
  });
});

test('an event in several lines teaches no form that breaks the stream', async () => {
  const events = messageEvents();
  const lines = (text: string) =>
    'event: content_block_delta\n' +
    'data: {"type":"content_block_delta",\n' +
    `data: "index":1,"delta":{"type":"text_delta","text":"${text}"}}\n\n`;
  upstream.answer = () => ({
    text: [...events.slice(0, 9), lines('one '), lines('two '), lines('three'), ...events.slice(-2)].join(''),
  });
  const reply = await ask({ stream: true });
  const came = await reply.text();
  for (const line of came.split('\n')) expect(line === '' || /^(event|data): /.test(line), line).toBe(true);
  for (const word of ['one ', 'two ', 'three']) expect(came).toContain(`"text":"${word}"`);
});

test('a stream with an event that is named an error fails, and is free, also if its data has another type', async () => {
  const named = `event: error\ndata: ${JSON.stringify({ type: 'overloaded', message: 'secret' })}\n\n`;
  upstream.answer = () => ({ text: messageEvents().toSpliced(-2, 0, named).join('') });
  const reply = await ask({ stream: true });
  const came = await reply.text();
  expect(came).toContain('"type":"overloaded_error"');
  expect(came).not.toContain('message_stop');
  expect(came).not.toContain('secret');
  expect(await spine.generation(reply.headers.get('x-generation-id'))).toMatchObject({ cost_micro_usdc: 0 });
});

test('an event in several lines keeps its numbers as they were written', async () => {
  const input = '"input":{"id":12345678901234567890}';
  const lines = ['"index":1,', `"content_block":{"type":"tool_use","id":"t","name":"f",${input}}}`];
  const block = `event: content_block_start\ndata: {"type":"content_block_start",\ndata: ${lines.join('\ndata: ')}\n\n`;
  upstream.answer = () => ({ text: messageEvents().toSpliced(-2, 0, block).join('') });
  expect(await (await ask({ stream: true })).text()).toContain(input);
});

test('numbers alone are kept of the usage of a message', () => {
  const decoder = createMessagesDecoder('m');
  const big = 'x'.repeat(100);
  const start = { message: { usage: { ...MESSAGE_USAGE, note: big } } };
  decoder.take('message_start', start, JSON.stringify(start));
  for (let i = 1; i < 5; i++)
    decoder.take('message_delta', { usage: { output_tokens: i, input_tokens: null, [`x${i}`]: big } }, '');
  expect(decoder.claim).toMatchObject({ prompt_tokens: 40, completion_tokens: 4 });
  expect(decoder.last(CUT, null)).not.toContain(big);
});

test('usage of a message that falls at the end of its stream is charged and shown as it was before', async () => {
  const zeros = { input_tokens: 0, output_tokens: 0, cache_read_input_tokens: 0, cache_creation_input_tokens: 0 };
  const fallen = event('message_delta', { delta: { stop_reason: 'end_turn' }, usage: zeros });
  upstream.answer = () => ({ text: messageEvents().toSpliced(-1, 0, fallen).join('') });
  const reply = await ask({ stream: true });
  const [, told] = /event: message_delta\ndata: (.*)/.exec(await reply.text())!;
  expect(JSON.parse(told!)).toMatchObject({ delta: { stop_reason: 'end_turn' }, usage: MESSAGE_USAGE });
  expect(await spine.generation(reply.headers.get('x-generation-id'))).toMatchObject({
    tokens_prompt: 40,
    tokens_completion: 9,
    flags: [],
  });
});

test('the end of a message may have smaller counts than its beginning, which is an estimate', () => {
  const decoder = createMessagesDecoder('m');
  const start = { message: { usage: MESSAGE_USAGE } };
  decoder.take('message_start', start, JSON.stringify(start));
  decoder.take('message_delta', { usage: { ...MESSAGE_USAGE, input_tokens: 2 } }, '');
  expect(decoder.claim).toMatchObject({ prompt_tokens: 30 });
});

test.each([
  [{ input_tokens: 8834, output_tokens: 1 }, { input_tokens: 0 }, 8834, { cached_tokens: 0, cache_write_tokens: 0 }],
  [
    { input_tokens: 34, cache_read_input_tokens: 8000, cache_creation_input_tokens: 800, output_tokens: 1 },
    { input_tokens: 34, cache_read_input_tokens: 0, cache_creation_input_tokens: 0 },
    8834,
    { cached_tokens: 8000, cache_write_tokens: 800 },
  ],
  // The beginning was an estimate.
  [
    { input_tokens: 9000, output_tokens: 1 },
    { input_tokens: 0, cache_read_input_tokens: 8834 },
    8834,
    { cached_tokens: 8834, cache_write_tokens: 0 },
  ],
  // The cached tokens are counted as input at the end.
  [
    { input_tokens: 10, cache_read_input_tokens: 8000, output_tokens: 1 },
    { input_tokens: 8010, cache_read_input_tokens: 0 },
    8010,
    { cached_tokens: 0, cache_write_tokens: 0 },
  ],
])('zeros at the end of a message erase nothing that its beginning told: %j, %j', (usage, zeros, prompt, details) => {
  const decoder = createMessagesDecoder('m');
  const start = { message: { usage } };
  decoder.take('message_start', start, JSON.stringify(start));
  decoder.take('message_delta', { delta: { stop_reason: 'end_turn' }, usage: { ...zeros, output_tokens: 47 } }, '');
  expect(decoder.claim).toMatchObject({
    prompt_tokens: prompt,
    completion_tokens: 47,
    prompt_tokens_details: details,
  });
  const [, told] = /"usage":(\{.*?\})/.exec(decoder.last({ ...CUT, isCorrected: false, isBroken: false }, null))!;
  const shown = JSON.parse(told!) as Record<string, number>;
  expect(
    shown['input_tokens']! + (shown['cache_read_input_tokens'] ?? 0) + (shown['cache_creation_input_tokens'] ?? 0),
  ).toBe(prompt);
});

test('parts of a count that are zeros at the end of a message keep their prices', () => {
  const decoder = createMessagesDecoder('m');
  const hour = { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 800 };
  const start = { message: { usage: { input_tokens: 1, cache_creation_input_tokens: 800, cache_creation: hour } } };
  decoder.take('message_start', start, JSON.stringify(start));
  const zeros = { cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 0 }, output_tokens: 0 };
  decoder.take('message_delta', { delta: {}, usage: { ...zeros, cache_creation_input_tokens: 0 } }, '');
  expect(decoder.claim).toMatchObject({ prompt_tokens: 801, cache_creation: hour });
});

test('of whole items at most 2 MiB are kept for a cut response', () => {
  const decoder = createResponsesDecoder('m');
  const item = { type: 'x', text: 'x'.repeat(512 * 1024) };
  const text = JSON.stringify({ item });
  for (let i = 0; i < 20; i++) decoder.take('response.output_item.done', { item }, text);
  const last = decoder.last(CUT, null);
  expect(last.length).toBeGreaterThan(1024 * 1024);
  expect(last.length).toBeLessThan(2 * 1024 * 1024 + 1024);
});

test('billed counts of a message leave out what a cache gave, also where its beginning alone tells that', () => {
  const decoder = createMessagesDecoder('m');
  const start = { message: { usage: MESSAGE_USAGE } };
  decoder.take('message_start', start, JSON.stringify(start));
  decoder.take('message_delta', { delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 900 } }, '');
  const usage = { prompt_tokens: 40, completion_tokens: 9 };
  const [, told] = /"usage":(\{.*?\})/.exec(decoder.last({ ...CUT, usage, isCorrected: true, isBroken: false }, null))!;
  expect(JSON.parse(told!)).toEqual(MESSAGE_USAGE);
});

test('billed counts of a message cut its parts of a cache, too', () => {
  const decoder = createMessagesDecoder('m');
  const claimed = {
    input_tokens: 10,
    output_tokens: 9,
    cache_creation_input_tokens: 300,
    cache_read_input_tokens: 0,
    cache_creation: { ephemeral_5m_input_tokens: 200, ephemeral_1h_input_tokens: 100 },
  };
  const split = (billed: number): unknown => {
    const reply = { type: 'message', content: [], usage: claimed };
    decoder.takeWhole(reply, new OutputSize());
    const end = { ...CUT, usage: { prompt_tokens: billed, completion_tokens: 9 }, isCorrected: true, isBroken: false };
    const { usage } = JSON.parse(decoder.whole(JSON.stringify(reply), reply, end)) as {
      usage: Record<string, unknown>;
    };
    return [usage['cache_creation_input_tokens'], usage['cache_creation']];
  };
  expect(split(0)).toEqual([0, { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 0 }]);
  expect(split(250)).toEqual([250, { ephemeral_5m_input_tokens: 200, ephemeral_1h_input_tokens: 50 }]);
});
