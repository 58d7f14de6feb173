import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startWireUpstream, type WireUpstream } from '../../openai/native/support/wire-upstream.ts';
import { modelBlock, startSpine, UNHURRIED, type Spine } from '../../support/spine.ts';

// Parts of the tokens and searches of providers that speak the Gemini API, where they have their own prices.

const MODEL = 'acme/gemini';
const SEARCH = 14_000;
let upstream: WireUpstream;
let spine: Spine;
beforeAll(async () => {
  upstream = await startWireUpstream();
  spine = await startSpine({
    credit: '1000',
    toml:
      UNHURRIED +
      modelBlock({
        name: MODEL,
        provider: 'Acme',
        url: upstream.url,
        prompt: 2,
        completion: 10,
        pricing: `
input_cache_read = 0.5
audio = 4
input_audio_cache = 1
internal_reasoning = 12
audio_output = 20
image_output = 30
web_search = 0.014`,
        params: 'wires = ["gemini"]\nsearches_max = 3',
      }).replace('context_length', 'input_modalities = ["text", "image", "audio", "video"]\ncontext_length'),
  });
});
afterAll(async () => {
  try {
    expect(await spine.faults()).toEqual([]);
    const { checks } = await spine.audit();
    expect(checks.find(({ name }) => name === 'charges')!.detail).toMatch(/^\d+ settlements cost .*, 0 less/);
  } finally {
    await spine.stop();
    await upstream.stop();
  }
});

const TEXT = 'a'.repeat(200);
const SOUND = { inlineData: { mimeType: 'audio/wav', data: 'AAAA' } };
const contents = (...parts: object[]) => [{ role: 'user', parts: [{ text: TEXT }, ...parts] }];
const answer = (usage: object, candidate: object = {}) => ({
  candidates: [
    { content: { role: 'model', parts: [{ text: 'Good morning' }] }, finishReason: 'STOP', index: 0, ...candidate },
  ],
  usageMetadata: usage,
  modelVersion: 'm',
});
/** 100 tokens of the prompt, 20 of the answer. */
const USAGE = { promptTokenCount: 100, candidatesTokenCount: 20, totalTokenCount: 120 };
const by = (counts: Readonly<Record<string, number>>) =>
  Object.entries(counts).map(([modality, tokenCount]) => ({ modality, tokenCount }));

async function call(asked: object, replies: readonly object[], stream: boolean) {
  upstream.answer = () =>
    stream
      ? { type: 'text/event-stream', text: replies.map((one) => `data: ${JSON.stringify(one)}\n\n`).join('') }
      : { text: JSON.stringify(replies.at(-1)) };
  const path = stream ? 'streamGenerateContent?alt=sse' : 'generateContent';
  const reply = await fetch(`${spine.origin}/api/v1beta/models/${MODEL}:${path}`, {
    method: 'POST',
    headers: { 'x-goog-api-key': spine.key, 'content-type': 'application/json' },
    body: JSON.stringify({ contents: contents(), generationConfig: { maxOutputTokens: 50 }, ...asked }),
  });
  const text = await reply.text();
  expect([reply.status, text]).toEqual([200, expect.any(String)]);
  return (await spine.generation(reply.headers.get('x-generation-id'))) as unknown as Record<string, unknown> & {
    readonly entries: readonly { readonly type: string; readonly amount_micro_usdc: number }[];
  };
}

interface Case {
  readonly asked?: object;
  readonly reply: object;
  readonly usage: Readonly<Record<string, number>>;
  readonly cost: number;
  /** Of the flag `usage_implausible`. Default: not flagged. */
  readonly claims?: readonly object[];
}

const SPOKEN = { generationConfig: { maxOutputTokens: 50, responseModalities: ['AUDIO'] } };
const searched = (...queries: unknown[]) => answer(USAGE, { groundingMetadata: { webSearchQueries: queries } });
const CASES: Readonly<Record<string, Case>> = {
  'nothing apart': { reply: answer(USAGE), usage: { prompt: 100, completion: 20 }, cost: 400 },
  'thoughts, which are counted beside the answer': {
    reply: answer({ ...USAGE, thoughtsTokenCount: 8, totalTokenCount: 128 }),
    usage: { prompt: 100, completion: 20, internal_reasoning: 8 },
    cost: 400 + 96,
  },
  'sound in the prompt, part of it cached': {
    asked: { contents: contents(SOUND) },
    reply: answer({
      ...USAGE,
      cachedContentTokenCount: 50,
      promptTokensDetails: by({ TEXT: 60, AUDIO: 40 }),
      cacheTokensDetails: by({ TEXT: 20, AUDIO: 30 }),
    }),
    usage: { prompt: 40, completion: 20, input_cache_read: 20, input_cache_write: 0, audio: 10, input_audio_cache: 30 },
    cost: 80 + 200 + 10 + 40 + 30,
  },
  'sound of a video': {
    asked: { contents: contents({ file_data: { mime_type: 'video/mp4', file_uri: 'https://example.com/a.mp4' } }) },
    reply: answer({ ...USAGE, promptTokensDetails: by({ TEXT: 60, AUDIO: 40 }) }),
    usage: { prompt: 60, completion: 20, audio: 40 },
    cost: 120 + 160 + 200,
  },
  'sound of a video whose type is called that of a picture': {
    asked: {
      contents: contents({ fileData: { mimeType: 'image/png', fileUri: 'https://www.youtube.com/watch?v=x' } }),
    },
    reply: answer({ ...USAGE, promptTokensDetails: by({ TEXT: 60, AUDIO: 40 }) }),
    usage: { prompt: 60, completion: 20, audio: 40 },
    cost: 120 + 160 + 200,
  },
  'sound that nobody sent': {
    reply: answer({ ...USAGE, promptTokensDetails: by({ AUDIO: 100 }) }),
    usage: { prompt: 100, completion: 20 },
    cost: 400,
  },
  'a spoken answer': {
    asked: SPOKEN,
    reply: answer({ ...USAGE, candidatesTokensDetails: by({ AUDIO: 18 }) }),
    usage: { prompt: 100, completion: 2, audio_output: 18 },
    cost: 200 + 20 + 360,
  },
  'a spoken answer, asked for in snake case': {
    asked: { generationConfig: undefined, generation_config: { maxOutputTokens: 50, response_modalities: ['audio'] } },
    reply: answer({ ...USAGE, candidatesTokensDetails: by({ AUDIO: 18 }) }),
    usage: { prompt: 100, completion: 2, audio_output: 18 },
    cost: 200 + 20 + 360,
  },
  'a picture in the answer': {
    reply: answer({ ...USAGE, candidatesTokensDetails: by({ IMAGE: 18 }) }),
    usage: { prompt: 100, completion: 2, image_output: 18 },
    cost: 200 + 20 + 540,
  },
  ...Object.fromEntries(
    [
      { tools: [{ googleSearch: {} }] },
      { tools: [{ google_search: {} }] },
      { tools: [{ functionDeclarations: [{ name: 'f' }] }, { googleSearch: {} }, { googleSearch: {} }] },
      { tools: [{ google_search_retrieval: {} }] },
      { tools: [{ enterpriseWebSearch: {} }] },
    ].map((asked): [string, Case] => [
      `searches with ${JSON.stringify(asked)}`,
      {
        asked,
        reply: searched('one', 'two', 'one', '', 5, null),
        usage: { prompt: 100, completion: 20, web_search: 2 },
        cost: 400 + 2 * SEARCH,
      },
    ]),
  ),
  'more searches than are locked, which is nobody’s fault': {
    asked: { tools: [{ googleSearch: {} }] },
    reply: searched('1', '2', '3', '4', '5'),
    usage: { prompt: 100, completion: 20, web_search: 3 },
    cost: 400 + 3 * SEARCH,
  },
  'searches without a tool for them': {
    asked: { tools: [{ googleSearch: null }] },
    reply: searched('1'),
    usage: { prompt: 100, completion: 20 },
    cost: 400,
    claims: [{ meter: 'web_search', claimed: 1, most: 0 }],
  },
  'odd members': {
    asked: { tools: [{ googleSearch: {} }], contents: contents(SOUND) },
    reply: answer(
      {
        ...USAGE,
        thoughtsTokenCount: -5,
        cachedContentTokenCount: 1e308,
        promptTokensDetails: [null, 5, { modality: 'AUDIO', tokenCount: 1.5 }, { modality: ['AUDIO'], tokenCount: 9 }],
        cacheTokensDetails: by({ AUDIO: Number.MAX_SAFE_INTEGER, TEXT: Number.MAX_SAFE_INTEGER }),
        candidatesTokensDetails: { modality: 'AUDIO' },
      },
      { groundingMetadata: { webSearchQueries: { length: 9 } } },
    ),
    usage: { prompt: 100, completion: 20 },
    cost: 400,
  },
};

describe.each([false, true])('stream %s', (stream) => {
  test.each(Object.entries(CASES))('%s', async (_name, { asked = {}, reply, usage, cost, claims = [] }) => {
    const generation = await call(asked, [reply], stream);
    expect(generation['usage_details']).toEqual(usage);
    expect(generation).toMatchObject({ cost_micro_usdc: cost, claims });
    expect(generation.entries.find(({ type }) => type === 'lock')!.amount_micro_usdc).toBeGreaterThanOrEqual(cost);
  });
});

test('searches and details in several events of a stream', async () => {
  const usage = { ...USAGE, promptTokensDetails: by({ TEXT: 60, AUDIO: 40 }) };
  const part = (queries: readonly string[], counts: object) =>
    answer(counts, { finishReason: undefined, groundingMetadata: { webSearchQueries: queries } });
  const generation = await call(
    { contents: contents(SOUND), tools: [{ googleSearch: {} }] },
    [part(['one'], usage), part(['one', 'two'], { promptTokenCount: 100 }), answer(USAGE)],
    true,
  );
  expect(generation['usage_details']).toEqual({ prompt: 60, completion: 20, audio: 40, web_search: 2 });
});
