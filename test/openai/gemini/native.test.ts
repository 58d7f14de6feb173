import { type Content, type GenerateContentResponse, GoogleGenAI } from '@google/genai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { dialIn, offeredModel, type DialledIn } from '../../support/dial-in.ts';
import { modelBlock, startSpine, UNHURRIED, type Spine } from '../../support/spine.ts';
import { completion } from '../translated/support/transcript-upstream.ts';
import { geminiAnswer, geminiEvents, GEMINI_USAGE, SIGNATURE } from '../native/support/transcripts.ts';
import {
  startWireUpstream,
  type Reached,
  type WireAnswer,
  type WireUpstream,
} from '../native/support/wire-upstream.ts';

// Google's SDK to providers that speak the Gemini API: directly, in a tunnel, and beside one that speaks only chat.

const DIRECT = 'acme/native';
const TUNNEL = 'tunnel/native';
const MIXED = 'acme/mixed';
let upstream: WireUpstream;
let cheap: WireUpstream;
let spine: Spine;
let proxy: DialledIn;
let client: GoogleGenAI;
beforeAll(async () => {
  upstream = await startWireUpstream();
  cheap = await startWireUpstream();
  upstream.answer = usually;
  cheap.answer = () => ({ text: JSON.stringify(completion({ content: 'translated' })) });
  const native = { provider: 'Acme', url: upstream.url, params: 'wires = ["gemini"]' };
  spine = await startSpine({
    toml:
      UNHURRIED +
      modelBlock({ name: DIRECT, ...native }).replace(
        'context_length',
        'input_modalities = ["text", "image"]\ncontext_length',
      ) +
      modelBlock({ name: MIXED, ...native, prompt: 9, completion: 9 }) +
      modelBlock({ name: MIXED, provider: 'Cheap', url: cheap.url }),
  });
  proxy = await dialIn({
    router: spine.origin,
    services: offeredModel({
      url: upstream.url,
      name: TUNNEL,
      params: 'wires = ["gemini"]\nhidden_reasoning_max = 100',
    }),
  });
  client = new GoogleGenAI({ apiKey: spine.key, httpOptions: { baseUrl: `${spine.origin}/api` } });
});
afterAll(async () => {
  try {
    await proxy.close();
    expect(await spine.faults()).toEqual([]);
  } finally {
    await spine.stop();
    await upstream.stop();
    await cheap.stop();
  }
});

/** The same in one piece and in a stream. */
function usually({ path }: Reached): WireAnswer {
  return path.endsWith(':streamGenerateContent?alt=sse')
    ? { type: 'text/event-stream', text: geminiEvents().join('') }
    : { text: geminiAnswer() };
}

const post = (address: string, body: unknown) =>
  fetch(`${spine.origin}/api/v1beta/models/${address}`, {
    method: 'POST',
    headers: { 'x-goog-api-key': spine.key, 'content-type': 'application/json' },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
const partsOf = (events: readonly GenerateContentResponse[]) =>
  events.flatMap(({ candidates }) => candidates![0]!.content!.parts!);
const CALL = { functionCall: { name: 'weather', args: { city: 'Oslo' }, id: 'fc_1' }, thoughtSignature: SIGNATURE };

describe.each([DIRECT, TUNNEL])('%s', (model) => {
  const ask = { model, contents: 'Hi', config: { maxOutputTokens: 50 } };

  test('answers in one piece, with what it signed', async () => {
    const answer = await client.models.generateContent(ask);
    const headers = answer.sdkHttpResponse!.headers!;
    expect(headers['x-tollgate-wire']).toBe('native');
    expect(answer.modelVersion).toBe(model);
    expect(answer.candidates![0]!.content!.parts).toContainEqual(CALL);
    expect(answer.usageMetadata).toMatchObject({ ...GEMINI_USAGE, cost: 0.000058 });
    // 40 × 1 + (7 + 2) × 2 micro-USD.
    expect(await spine.generation(headers['x-generation-id']!)).toMatchObject({
      cost_micro_usdc: 58,
      tokens_completion: 9,
      tokens_cached: 20,
      flags: [],
    });
  });

  test('streams, and tells the end and the cost once it is settled', async () => {
    const events = await Array.fromAsync(await client.models.generateContentStream(ask));
    const parts = partsOf(events);
    expect(
      parts
        .filter(({ thought }) => !thought)
        .map(({ text = '' }) => text)
        .join(''),
    ).toBe('Let me see: "é🌍"');
    expect(parts).toContainEqual(CALL);
    expect(events.map(({ candidates }) => candidates![0]!.finishReason).filter((one) => one !== undefined)).toEqual([
      'STOP',
    ]);
    const last = events.at(-1)!;
    expect(last.candidates![0]).toMatchObject({ finishReason: 'STOP', content: { parts: [{ text: '' }] } });
    expect(last.usageMetadata).toMatchObject({ ...GEMINI_USAGE, cost: 0.000058 });
    for (const { modelVersion } of events) expect(modelVersion).toBe(model);
  });

  test('streams with events that have no candidates, and a part of the usage at the end', async () => {
    const data = (one: object) => `data: ${JSON.stringify(one)}\r\n\r\n`;
    const text = [
      data({ modelVersion: 'theirs', responseId: 'r' }),
      data({ candidates: null, usageMetadata: { promptTokenCount: 40 } }),
      ...geminiEvents(),
      data({ usageMetadata: { promptTokenCount: 40, totalTokenCount: 40 }, modelVersion: 'theirs' }),
    ].join('');
    upstream.answer = () => ({ type: 'text/event-stream', text });
    try {
      const events = await Array.fromAsync(await client.models.generateContentStream(ask));
      expect(events.map((one) => one.text ?? '').join('')).toBe('Let me see: "é🌍"');
      expect(events.at(-1)!.usageMetadata).toMatchObject({ ...GEMINI_USAGE, cost: 0.000058 });
    } finally {
      upstream.answer = usually;
    }
  });

  test('a stream of events that are no answer fails', async () => {
    upstream.answer = () => ({ type: 'text/event-stream', text: 'data: {"choices":[]}\n\n' });
    try {
      await expect(client.models.generateContentStream(ask)).rejects.toThrow('no answer');
    } finally {
      upstream.answer = usually;
    }
  });

  test('keeps a conversation, and gets its own signatures back', async () => {
    const chat = client.chats.create({ model, config: { maxOutputTokens: 50 } });
    for await (const _ of await chat.sendMessageStream({ message: 'Hi' }));
    const response = { name: 'weather', id: 'fc_1', response: { output: 'rain' } };
    await chat.sendMessage({ message: { functionResponse: response } });
    const { contents } = upstream.reached.at(-1)!.body as { contents: Content[] };
    const parts = contents.flatMap((content) => content.parts!);
    expect(parts).toContainEqual(CALL);
    expect(parts).toContainEqual({ functionResponse: response });
  });
});

test('each gets the key of its own upstream, at the address of the API', () => {
  expect(upstream.reached.length).toBeGreaterThan(4);
  for (const { path, headers } of upstream.reached) {
    expect(path).toMatch(/^\/v1beta\/models\/[\w.-]+:(?:generateContent|streamGenerateContent\?alt=sse)$/);
    expect(headers['x-goog-api-key']).toBeDefined();
    expect(JSON.stringify(headers)).not.toContain(spine.key);
  }
});

describe('the bytes of a request', () => {
  const BODY = `{ "contents":[{"role":"user","parts":[{"text":"Hi \\ud83c\\udf0d", "videoMetadata":{"fps":1.0}}]}],
  "tools":[{"computerUse":{}}], "generationConfig" : {"maxOutputTokens":50, "temperature":1.0}, "futureField":{"seed":12345678901234567890} }`;

  test('reach the provider as they came', async () => {
    const reply = await post(`${DIRECT}:generateContent`, BODY);
    expect(reply.status, await reply.clone().text()).toBe(200);
    expect(reply.headers.get('x-tollgate-dropped')).toBeNull();
    expect(upstream.reached.at(-1)!.text).toBe(BODY);
  });
});

test('a request that a translation loses something of goes to the provider that speaks the API', async () => {
  const plain = [{ role: 'user', parts: [{ text: 'x' }] }];
  const wireOf = async (contents: unknown) =>
    (await post(`${MIXED}:generateContent`, { contents })).headers.get('x-tollgate-wire');
  expect(await wireOf(plain)).toBe('translated');
  expect(await wireOf([...plain, { role: 'model', parts: [CALL] }, ...plain])).toBe('native');
});

const ASKED = { contents: [{ parts: [{ text: 'x' }] }] };

describe('a stream', () => {
  const stream = async (text: string, more: Partial<WireAnswer> = {}) => {
    upstream.answer = () => ({ type: 'text/event-stream', text, ...more });
    try {
      return await (await post(`${DIRECT}:streamGenerateContent?alt=sse`, ASKED)).text();
    } finally {
      upstream.answer = usually;
    }
  };
  const data = (one: object) => `data: ${JSON.stringify(one)}\n\n`;
  const said = (text: string, more: object = {}) => ({
    candidates: [{ content: { parts: [{ text }], role: 'model' }, ...more }],
  });

  test('goes on after its reason to stop, and the reason still comes last', async () => {
    const events = data(said('a', { finishReason: 'STOP' })) + data(said('b')) + data({ usageMetadata: GEMINI_USAGE });
    const lines = (await stream(events)).trim().split('\n\n');
    const parsed = lines.map((line) => JSON.parse(line.slice(6)) as GenerateContentResponse);
    expect(parsed.map(({ candidates }) => candidates![0]!.content!.parts![0]!.text)).toEqual(['a', 'b', '']);
    expect(parsed.map(({ candidates }) => candidates![0]!.finishReason)).toEqual([undefined, undefined, 'STOP']);
    expect(parsed.at(-1)!.usageMetadata).toMatchObject(GEMINI_USAGE);
  });

  test('that is blocked has no words, and says so', async () => {
    const blocked = { promptFeedback: { blockReason: 'SAFETY' }, usageMetadata: { promptTokenCount: 9 } };
    expect(JSON.parse((await stream(data(blocked))).slice(6))).toMatchObject({
      promptFeedback: blocked.promptFeedback,
    });
  });

  test('that breaks or fails is an error at its end', async () => {
    const error = data({ error: { code: 503, message: 'overloaded', status: 'UNAVAILABLE' } });
    const later = async (rest: string, more: Partial<WireAnswer> = {}) => {
      const begun = Promise.withResolvers<string>();
      upstream.answer = () => ({ type: 'text/event-stream', text: data(said('a')), rest: begun.promise, ...more });
      const reply = await post(`${DIRECT}:streamGenerateContent?alt=sse`, ASKED);
      begun.resolve(rest);
      return (await reply.text()).trim().split('\n\n').at(-1);
    };
    expect(await later(error)).toMatch(/^data: \{"error":\{"code":5/);
    expect(await later('data: {"x"', { breaks: true })).toMatch(/"error"|MAX_TOKENS/);
    upstream.answer = usually;
  });
});
