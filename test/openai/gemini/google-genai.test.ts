import { ApiError, type GenerateContentResponse, GoogleGenAI } from '@google/genai';
import { beforeAll, describe, expect, test } from 'vitest';
import { modelBlock, UNHURRIED } from '../../support/spine.ts';
import { chunk, completion, startTranscripts, usage, words } from '../translated/support/transcript-upstream.ts';
import { ofFile, spineOfFile } from '../../support/of-file.ts';

// Google's SDK as it is on npm, with nothing but the address and the key of a gateway. The providers speak only chat.

const MODEL = 'acme/thinker';
let client: GoogleGenAI;
const upstream = ofFile(startTranscripts, (one) => one.stop());
const spine = spineOfFile(() => {
  const params = 'forward = ["reasoning"]';
  return {
    toml:
      UNHURRIED +
      modelBlock({ name: MODEL, provider: 'Acme', url: upstream.url, params }).replace(
        'context_length',
        'input_modalities = ["text", "image", "audio", "file"]\noutput_modalities = ["text", "image"]\ncontext_length',
      ),
  };
});
beforeAll(() => {
  client = clientAt(`${spine.origin}/api`);
});

const clientAt = (baseUrl: string, apiKey = spine.key) => new GoogleGenAI({ apiKey, httpOptions: { baseUrl } });
const idOf = ({ sdkHttpResponse }: GenerateContentResponse): string => sdkHttpResponse!.headers!['x-generation-id']!;

describe('models.generateContent', () => {
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
});

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
