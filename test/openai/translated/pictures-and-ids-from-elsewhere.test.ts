import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { completion } from './support/transcript-upstream.ts';
import { response } from '../native/support/transcripts.ts';
import { startWireUpstream, type WireUpstream } from '../native/support/wire-upstream.ts';
import { modelBlock, startSpine, UNHURRIED, type Spine } from '../../support/spine.ts';

// Pictures and ids of calls as clients and other services write them, at a provider of the chat API: it gets what it
// can read.

const CHAT = 'acme/chat';
const NATIVE = 'acme/responses';
let upstream: WireUpstream;
let spine: Spine;
beforeAll(async () => {
  upstream = await startWireUpstream();
  upstream.answer = ({ path }) =>
    path.endsWith('/responses') ? { text: response({}) } : { text: JSON.stringify(completion({ content: 'ok' })) };
  const lines = 'input_modalities = ["text", "image"]';
  const at = { provider: 'Acme', url: upstream.url, lines };
  spine = await startSpine({
    toml:
      UNHURRIED +
      modelBlock({ name: CHAT, ...at }) +
      modelBlock({ name: NATIVE, ...at, params: 'wires = ["responses"]' }),
  });
});
afterAll(async () => {
  await spine.stop();
  await upstream.stop();
});
beforeEach(() => void (upstream.reached.length = 0));
afterEach(async () => {
  expect(await spine.faults()).toEqual([]);
});

const post = async (path: string, body: object) => {
  const reply = await fetch(spine.origin + path, {
    method: 'POST',
    headers: { 'x-api-key': spine.key, authorization: `Bearer ${spine.key}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  return { status: reply.status, text: await reply.text() };
};

/** Bytes whose base64 has both characters that the alphabet of URLs replaces, and padding. */
const BYTES = Buffer.from([0xfb, 0xff, 0xbf, 0x89, 0x50, 0x4e, 0x47]);
const BASE64 = BYTES.toString('base64');

/** The URLs of the pictures that the provider got. */
const picturesSent = () =>
  (upstream.reached.at(-1)!.body['messages'] as { content: unknown }[])
    .flatMap(({ content }) => (Array.isArray(content) ? (content as { image_url?: { url: string } }[]) : []))
    .flatMap(({ image_url: image }) => (image === undefined ? [] : [image.url]));

/** Each API's way to send a picture of a type and data. */
const DOORS = {
  messages: (media_type: string, data: string) =>
    post('/api/v1/messages', {
      model: CHAT,
      max_tokens: 9,
      messages: [{ role: 'user', content: [{ type: 'image', source: { type: 'base64', media_type, data } }] }],
    }),
  responses: (type: string, data: string) =>
    post('/v1/responses', {
      model: CHAT,
      input: [{ role: 'user', content: [{ type: 'input_image', image_url: `data:${type};base64,${data}` }] }],
    }),
  gemini: (mimeType: string, data: string) =>
    post(`/v1beta/models/${CHAT}:generateContent`, {
      contents: [{ role: 'user', parts: [{ inlineData: { mimeType, data } }] }],
    }),
  'a message to the model as an agent': (mimeType: string, bytes: string) =>
    post(`/a2a/model/${CHAT}`, {
      jsonrpc: '2.0',
      id: 1,
      method: 'message/send',
      params: {
        message: {
          role: 'user',
          messageId: 'm',
          kind: 'message',
          parts: [{ kind: 'file', file: { mimeType, bytes } }],
        },
      },
    }),
};

describe.each(Object.entries(DOORS))('a picture by %s', (_name, send) => {
  test.each([
    ['as it should be', 'image/png', BASE64, 'image/png'],
    ['with line ends', 'image/png', `${BASE64.slice(0, 4)}\r\n${BASE64.slice(4)}\n`, 'image/png'],
    ['in the alphabet of URLs, without padding', 'image/png', BYTES.toString('base64url'), 'image/png'],
    ['as image/jpg', 'image/jpg', BASE64, 'image/jpeg'],
    ['in capitals', 'IMAGE/PNG', BASE64, 'image/png'],
  ])('%s', async (_how, type, data, sent) => {
    const { status, text } = await send(type, data);
    expect(status, text).toBe(200);
    expect(picturesSent()).toEqual([`data:${sent};base64,${BASE64}`]);
  });
});

test('a data URL inside the data of a picture of the Messages API', async () => {
  await DOORS.messages('image/png', `data:image/webp;base64,${BASE64}`);
  expect(picturesSent()).toEqual([`data:image/webp;base64,${BASE64}`]);
});

test.each([`data:image/png;charset=utf-8;base64,${BASE64}`, `DATA:Image/PNG;BASE64,${BASE64}`])(
  'chat and responses take the data URL %s',
  async (url) => {
    const parts = [{ type: 'image_url', image_url: { url } }];
    const chat = await post('/v1/chat/completions', { model: CHAT, messages: [{ role: 'user', content: parts }] });
    expect(chat.status, chat.text).toBe(200);
    // Chat passes on what came.
    expect(picturesSent()).toEqual([url]);
    const input = [{ role: 'user', content: [{ type: 'input_image', image_url: url }] }];
    expect((await post('/v1/responses', { model: CHAT, input })).status).toBe(200);
    expect(picturesSent()).toEqual([`data:image/png;base64,${BASE64}`]);
  },
);

test('a document of the Messages API with line ends', async () => {
  const source = { type: 'base64', media_type: 'application/pdf', data: `${BASE64.slice(0, 4)}\n${BASE64.slice(4)}` };
  const content = [{ type: 'document', source }];
  const reply = await post('/api/v1/messages', { model: CHAT, max_tokens: 9, messages: [{ role: 'user', content }] });
  // This model takes no files, and says so instead of that the data is no base64.
  expect(reply.status, reply.text).toBe(422);
});

test.each(['!', 'data:text/plain;base64,AAAA', ''])('what is no picture is refused: %j', async (data) => {
  const { status, text } = await DOORS.messages('image/png', data);
  expect(status).toBe(400);
  expect(text).toContain('messages[0].content[0].source.data');
  expect(upstream.reached).toEqual([]);
});

test('a screenshot goes along as a picture of the user', async () => {
  const image_url = `data:image/png;base64,${BASE64}`;
  const output = { type: 'computer_screenshot', image_url };
  const { status } = await post('/v1/responses', {
    model: CHAT,
    input: [
      { role: 'user', content: 'Look' },
      { type: 'computer_call', id: 'cu', call_id: 'c', action: { type: 'screenshot' }, status: 'completed' },
      { type: 'computer_call_output', call_id: 'c', output },
    ],
  });
  expect(status).toBe(200);
  expect(picturesSent()).toEqual([image_url]);
  const none = { type: 'computer_call_output', call_id: 'c', output: { type: 'computer_screenshot' } };
  const refused = await post('/v1/responses', { model: CHAT, input: [none] });
  expect(refused.status).toBe(400);
  expect(refused.text).toContain('input[0].output.image_url');
});

const LONG = `mcp__tools__${'a1b2'.repeat(21)}`;
const call = { type: 'function_call', call_id: LONG, name: 'f', arguments: '{}' };
const result = { type: 'function_call_output', call_id: LONG, output: 'done' };
const calling = {
  messages: () =>
    post('/api/v1/messages', {
      model: CHAT,
      max_tokens: 9,
      messages: [
        { role: 'user', content: 'x' },
        { role: 'assistant', content: [{ type: 'tool_use', id: LONG, name: 'f', input: {} }] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: LONG, content: 'done' }] },
      ],
    }),
  responses: () => post('/v1/responses', { model: CHAT, input: [{ role: 'user', content: 'x' }, call, result] }),
  gemini: () =>
    post(`/v1beta/models/${CHAT}:generateContent`, {
      contents: [
        { role: 'user', parts: [{ text: 'x' }] },
        { role: 'model', parts: [{ functionCall: { id: LONG, name: 'f', args: {} } }] },
        { role: 'user', parts: [{ functionResponse: { id: LONG, name: 'f', response: {} } }] },
      ],
    }),
  'responses, of a provider that speaks them': () =>
    post('/v1/responses', { model: NATIVE, store: false, input: [{ role: 'user', content: 'x' }, call, result] }),
};

test.each(Object.entries(calling))(
  'an id of a call of 96 characters becomes short, everywhere alike: %s',
  async (_name, ask) => {
    const { status, text } = await ask();
    expect(status, text).toBe(200);
    const { body } = upstream.reached.at(-1)!;
    const items = (body['input'] ?? body['messages']) as Record<string, unknown>[];
    const ids = items.flatMap(({ call_id, tool_call_id, tool_calls }) => [
      ...[call_id, tool_call_id].filter((id) => typeof id === 'string'),
      ...((tool_calls as { id: string }[] | undefined) ?? []).map(({ id }) => id),
    ]);
    expect(ids).toHaveLength(2);
    expect(new Set(ids).size).toBe(1);
    expect((ids[0] as string).length).toBeLessThanOrEqual(40);
  },
);
