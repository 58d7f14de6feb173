import {
  ApiError,
  FunctionCallingConfigMode,
  type GenerateContentResponse,
  GoogleGenAI,
  ThinkingLevel,
  Type,
} from '@google/genai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { modelBlock, startSpine, UNHURRIED, type Spine } from '../../support/spine.ts';
import { SMALLEST_PNG } from '../../peers/peer-provider.ts';
import {
  chunk,
  completion,
  startTranscripts,
  usage,
  words,
  type TranscriptUpstream,
} from '../translated/support/transcript-upstream.ts';

// Google's SDK as it is on npm, with nothing but the address and the key of a gateway. The providers speak only chat.

const MODEL = 'acme/thinker';
let upstream: TranscriptUpstream;
let spine: Spine;
let client: GoogleGenAI;
beforeAll(async () => {
  upstream = await startTranscripts();
  const params = 'forward = ["reasoning"]';
  spine = await startSpine({
    toml:
      UNHURRIED +
      modelBlock({ name: MODEL, provider: 'Acme', url: upstream.url, params }).replace(
        'context_length',
        'input_modalities = ["text", "image", "audio", "file"]\noutput_modalities = ["text", "image"]\ncontext_length',
      ),
  });
  client = clientAt(`${spine.origin}/api`);
});
afterAll(async () => {
  try {
    expect(await spine.faults()).toEqual([]);
  } finally {
    await spine.stop();
    await upstream.stop();
  }
});

const clientAt = (baseUrl: string, apiKey = spine.key) => new GoogleGenAI({ apiKey, httpOptions: { baseUrl } });
const asked = () => upstream.asked.at(-1)!;
const messages = () => asked()['messages'] as Record<string, unknown>[];
const idOf = ({ sdkHttpResponse }: GenerateContentResponse): string => sdkHttpResponse!.headers!['x-generation-id']!;

const WEATHER = {
  name: 'weather',
  description: 'The weather of a city.',
  parameters: {
    type: Type.OBJECT,
    properties: { city: { type: Type.STRING, nullable: true }, days: { type: Type.INTEGER } },
    required: ['city'],
  },
};
const WEATHER_SCHEMA = {
  type: 'object',
  properties: { city: { type: ['string', 'null'] }, days: { type: 'integer' } },
  required: ['city'],
};

describe('models.generateContent', () => {
  test('answers a text, with the use and the cost of it', async () => {
    upstream.answer = () => ({ body: completion({ content: 'Good morning' }) });
    const answer = await client.models.generateContent({
      model: MODEL,
      contents: 'Hi',
      config: {
        systemInstruction: 'Be kind.',
        maxOutputTokens: 60,
        temperature: 0.5,
        topP: 0.9,
        topK: 40,
        seed: 7,
        stopSequences: ['END'],
        presencePenalty: 0.1,
        frequencyPenalty: 0.2,
        candidateCount: 1,
      },
    });
    expect(answer.text).toBe('Good morning');
    expect(answer.modelVersion).toBe(MODEL);
    expect(answer.candidates![0]).toMatchObject({ finishReason: 'STOP', index: 0, content: { role: 'model' } });
    expect(answer.usageMetadata).toEqual({
      promptTokenCount: 20,
      cachedContentTokenCount: 5,
      candidatesTokenCount: 9,
      totalTokenCount: 29,
      // 20 × 1 + 9 × 2 micro-USD.
      cost: 0.000038,
      cost_details: expect.anything() as unknown,
    });
    expect(await spine.generation(idOf(answer))).toMatchObject({ state: 'settled', cost_micro_usdc: 38 });
    expect(asked()).toMatchObject({
      messages: [
        { role: 'system', content: 'Be kind.' },
        { role: 'user', content: 'Hi' },
      ],
      max_tokens: 60,
      temperature: 0.5,
      top_p: 0.9,
      top_k: 40,
      seed: 7,
      stop: ['END'],
      presence_penalty: 0.1,
      frequency_penalty: 0.2,
    });
  });

  test.each([
    ['', 'v1'],
    ['', 'v1beta'],
    ['/api', 'v1beta'],
    ['/api/', 'v1'],
  ])('works at a base URL that ends with "%s", in version %s', async (path, apiVersion) => {
    upstream.answer = ({ stream }) =>
      stream === true ? { chunks: words('Hi') } : { body: completion({ content: 'Hi' }) };
    const httpOptions = { baseUrl: spine.origin + path, apiVersion };
    const { models } = new GoogleGenAI({ apiKey: spine.key, httpOptions });
    const ask = { model: MODEL, contents: 'Hi' };
    expect((await models.generateContent(ask)).text).toBe('Hi');
    expect(await Array.fromAsync(await models.generateContentStream(ask))).toHaveLength(2);
    expect(await models.countTokens(ask)).toMatchObject({ totalTokens: 18 });
    expect((await models.get({ model: MODEL })).name).toBe(`models/${MODEL}`);
    expect((await Array.fromAsync(await models.list())).length).toBeGreaterThan(0);
  });

  test.each(['models/acme/thinker', 'acme%2Fthinker', 'acme/thinker:floor'])('takes the name %s', async (model) => {
    upstream.answer = () => ({ body: completion({ content: 'Hi' }) });
    expect((await client.models.generateContent({ model, contents: 'Hi' })).text).toBe('Hi');
  });

  test('gives images and files to the model', async () => {
    upstream.answer = () => ({ body: completion({ content: 'A dot' }) });
    await client.models.generateContent({
      model: MODEL,
      contents: [
        { text: 'What is it?' },
        { inlineData: { mimeType: 'image/png', data: SMALLEST_PNG } },
        { inlineData: { mimeType: 'audio/mpeg', data: 'AAAA' } },
        { inlineData: { mimeType: 'application/pdf', data: 'JVBERg==' } },
        { inlineData: { mimeType: 'text/csv', data: Buffer.from('a,é').toString('base64') } },
        { fileData: { mimeType: 'image/png', fileUri: 'https://pictures.example/a.png' } },
      ],
    });
    expect(messages()[0]!['content']).toEqual([
      { type: 'text', text: 'What is it?' },
      { type: 'image_url', image_url: { url: `data:image/png;base64,${SMALLEST_PNG}` } },
      { type: 'input_audio', input_audio: { data: 'AAAA', format: 'mp3' } },
      { type: 'file', file: { filename: 'document.pdf', file_data: 'data:application/pdf;base64,JVBERg==' } },
      { type: 'text', text: 'a,é' },
      { type: 'image_url', image_url: { url: 'https://pictures.example/a.png' } },
    ]);
  });

  test('shows pictures that the model made', async () => {
    const url = `data:image/png;base64,${SMALLEST_PNG}`;
    upstream.answer = ({ stream }) => {
      const images = [{ type: 'image_url', image_url: { url } }];
      return stream === true
        ? { chunks: [chunk({ content: 'Here' }), chunk({ images }), chunk({}, 'stop'), usage()] }
        : { body: completion({ content: 'Here', images }) };
    };
    const ask = { model: MODEL, contents: 'Draw', config: { responseModalities: ['TEXT', 'IMAGE'] } };
    const picture = { inlineData: { mimeType: 'image/png', data: SMALLEST_PNG } };
    const whole = await client.models.generateContent(ask);
    expect(whole.candidates![0]!.content!.parts).toEqual([{ text: 'Here' }, picture]);
    expect(asked()['modalities']).toEqual(['text', 'image']);
    const events = await Array.fromAsync(await client.models.generateContentStream(ask));
    expect(partsOf(events)).toEqual([{ text: 'Here' }, picture, { text: '' }]);
  });

  test('asks for JSON of a schema', async () => {
    upstream.answer = () => ({ body: completion({ content: '{"a":1}' }) });
    const json = async (config: object) => {
      await client.models.generateContent({
        model: MODEL,
        contents: 'x',
        config: { responseMimeType: 'application/json', ...config },
      });
      return asked()['response_format'];
    };
    const strict = {
      type: 'object',
      properties: { a: { type: 'integer' } },
      required: ['a'],
      additionalProperties: false,
    };
    expect(await json({})).toEqual({ type: 'json_object' });
    expect(await json({ responseJsonSchema: strict })).toEqual({
      type: 'json_schema',
      json_schema: { name: 'answer', schema: strict, strict: true },
    });
    expect(
      await json({
        responseSchema: {
          type: Type.ARRAY,
          minItems: '1',
          items: { type: Type.STRING, enum: ['a', 'b'], nullable: true },
        },
      }),
    ).toEqual({
      type: 'json_schema',
      json_schema: {
        name: 'answer',
        schema: { type: 'array', minItems: 1, items: { type: ['string', 'null'], enum: ['a', 'b', null] } },
        strict: true,
      },
    });
    expect(
      await json({ responseSchema: { type: Type.OBJECT, properties: { a: { type: Type.STRING } } } }),
    ).toMatchObject({ json_schema: { strict: false } });
  });

  test.each([
    [{ mode: FunctionCallingConfigMode.AUTO }, 'auto', 2],
    [{ mode: FunctionCallingConfigMode.NONE }, 'none', 2],
    [{ mode: FunctionCallingConfigMode.ANY }, 'required', 2],
    [
      { mode: FunctionCallingConfigMode.ANY, allowedFunctionNames: ['weather'] },
      { type: 'function', function: { name: 'weather' } },
      1,
    ],
    [{ mode: FunctionCallingConfigMode.ANY, allowedFunctionNames: ['weather', 'other'] }, 'required', 2],
    [{ mode: FunctionCallingConfigMode.VALIDATED, allowedFunctionNames: ['other'] }, 'auto', 1],
  ])('says which functions may be called: %j', async (functionCallingConfig, choice, count) => {
    upstream.answer = () => ({ body: completion({ content: 'Hi' }) });
    const other = { name: 'other', parametersJsonSchema: { type: 'object', additionalProperties: false } };
    await client.models.generateContent({
      model: MODEL,
      contents: 'x',
      config: {
        tools: [{ functionDeclarations: [WEATHER, other] }],
        toolConfig: { functionCallingConfig },
      },
    });
    expect(asked()['tool_choice']).toEqual(choice);
    const tools = asked()['tools'] as { function: { name: string; parameters: object } }[];
    expect(tools).toHaveLength(count);
    for (const { function: fn } of tools)
      expect(fn.parameters).toEqual(fn.name === 'weather' ? WEATHER_SCHEMA : other.parametersJsonSchema);
  });

  test.each([
    [{ thinkingBudget: 0 }, { enabled: false }],
    [{ thinkingBudget: -1 }, { enabled: true }],
    [{ thinkingBudget: 512 }, { max_tokens: 512 }],
    [{ thinkingLevel: ThinkingLevel.LOW }, { effort: 'low' }],
    [{ includeThoughts: true }, { enabled: true }],
  ])('says how much the model thinks: %j', async (thinkingConfig, reasoning) => {
    upstream.answer = () => ({ body: completion({ content: 'Hi' }) });
    await client.models.generateContent({
      model: MODEL,
      contents: 'x',
      config: { thinkingConfig, maxOutputTokens: 1_000 },
    });
    expect(asked()['reasoning']).toEqual(reasoning);
  });

  test('names what the model did not get', async () => {
    upstream.answer = () => ({ body: completion({ content: 'Hi' }) });
    const { sdkHttpResponse } = await client.models.generateContent({
      model: MODEL,
      contents: 'x',
      config: { responseLogprobs: true, safetySettings: [], mediaResolution: 'MEDIA_RESOLUTION_LOW' as never },
    });
    expect(sdkHttpResponse!.headers!['x-tollgate-wire']).toBe('translated');
    expect(sdkHttpResponse!.headers!['x-tollgate-dropped']).toBe(
      'safetySettings, generationConfig.responseLogprobs, generationConfig.mediaResolution',
    );
  });

  test.each([
    ['length', 'MAX_TOKENS'],
    ['content_filter', 'SAFETY'],
    ['tool_calls', 'STOP'],
  ])('tells why it stopped: %s', async (finish, reason) => {
    upstream.answer = () => ({ body: completion({ content: 'Hi' }, finish) });
    const { candidates } = await client.models.generateContent({ model: MODEL, contents: 'x' });
    expect(candidates![0]!.finishReason).toBe(reason);
  });
});

const partsOf = (events: readonly GenerateContentResponse[]) =>
  events.flatMap(({ candidates }) => candidates![0]!.content!.parts!);

describe('models.generateContentStream', () => {
  test('gives each text at once, and the use and the cost with the end', async () => {
    let release = () => {};
    upstream.answer = () => ({
      first: [chunk({ content: 'One "é🌍" ' })],
      until: new Promise<void>((resolve) => (release = resolve)),
      chunks: [chunk({ content: 'two' }), chunk({}, 'length'), usage()],
    });
    const events: GenerateContentResponse[] = [];
    for await (const event of await client.models.generateContentStream({ model: MODEL, contents: 'x' })) {
      events.push(event);
      release();
    }
    expect(events.map(({ text }) => text)).toEqual(['One "é🌍" ', 'two', '']);
    const last = events.at(-1)!;
    expect(last.candidates![0]!.finishReason).toBe('MAX_TOKENS');
    expect(last.usageMetadata).toMatchObject({ promptTokenCount: 20, totalTokenCount: 29, cost: 0.000038 });
    expect(new Set(events.map(({ responseId }) => responseId)).size).toBe(1);
    expect(await spine.generation(idOf(last))).toMatchObject({ cost_micro_usdc: 38 });
  });

  test('throws the error of a stream that fails', async () => {
    upstream.answer = () => ({ chunks: [chunk({ content: 'a' }), { error: { message: 'broken', code: 500 } }] });
    const failed = (async () => {
      for await (const _ of await client.models.generateContentStream({ model: MODEL, contents: 'x' }));
    })();
    await expect(failed).rejects.toThrow(ApiError);
    await expect(failed).rejects.toThrow(/broken|provider/i);
  });

  test('charges for what came before the client left', async () => {
    let left = () => {};
    const gone = new Promise<void>((resolve) => (left = resolve));
    upstream.answer = () => ({
      first: [chunk({ content: 'One two three four' })],
      until: gone,
      chunks: [chunk({ content: ' five' }), chunk({}, 'stop'), usage()],
    });
    const abort = new AbortController();
    const stream = await client.models.generateContentStream({
      model: MODEL,
      contents: 'x',
      config: { abortSignal: abort.signal },
    });
    const { value } = (await stream.next()) as { value: GenerateContentResponse };
    abort.abort();
    left();
    await expect(stream.next()).rejects.toThrow();
    await expect.poll(() => spine.generation(idOf(value))).toMatchObject({ state: 'settled', cost_micro_usdc: 38 });
  });
});

test('models.countTokens estimates a prompt', async () => {
  const { totalTokens } = await client.models.countTokens({ model: MODEL, contents: 'x'.repeat(400) });
  // A token for four bytes of the text and the role, and 16 for the message.
  expect(totalTokens).toBe(101 + 16);
});

test('models.list and models.get show what can be called', async () => {
  const pager = await client.models.list({ config: { pageSize: 1 } });
  const listed = await Array.fromAsync(pager);
  expect(listed.map(({ name }) => name)).toContain(`models/${MODEL}`);
  const model = await client.models.get({ model: MODEL });
  expect(model).toMatchObject({
    name: `models/${MODEL}`,
    supportedActions: expect.arrayContaining(['generateContent']) as unknown,
  });
  await expect(client.models.get({ model: 'acme/none' })).rejects.toMatchObject({ status: 404 });
});
