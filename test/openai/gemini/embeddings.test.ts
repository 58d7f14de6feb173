import { type EmbedContentResponse, GoogleGenAI } from '@google/genai';
import { beforeAll, expect, test } from 'vitest';
import { embed } from '../../../src/program/demo/embeddings.ts';
import { UNHURRIED } from '../../support/spine.ts';
import { startTranscripts } from '../translated/support/transcript-upstream.ts';
import { ofFile, spineOfFile } from '../../support/of-file.ts';

// Embeddings by Google's SDK as it is on npm, and what each reply costs.

const MODEL = 'acme/vectors';
let client: GoogleGenAI;
const upstream = ofFile(startTranscripts, (one) => one.stop());
const spine = spineOfFile(() => {
  upstream.answer = (body) => ({ body: embed(body) });
  return {
    toml: `${UNHURRIED}
[upstream]
cooldown_ms = 0
[[models]]
name = "${MODEL}"
display_name = "Acme: Vectors"
provider_name = "Acme"
context_length = 1000
output_modalities = ["embeddings"]
[models.pricing]
prompt = 1
completion = 0
[models.params]
model = "upstream-vectors"
api_base = "${upstream.url}"
api_key = "k"
`,
  };
});
beforeAll(() => {
  client = new GoogleGenAI({ apiKey: spine.key, httpOptions: { baseUrl: `${spine.origin}/api` } });
});

const asked = () => upstream.asked.at(-1)!;
const post = (method: string, body: object, headers: Record<string, string> = {}) =>
  fetch(`${spine.origin}/api/v1beta/models/${MODEL}:${method}`, {
    method: 'POST',
    headers: { 'x-goog-api-key': spine.key, 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });

test('texts become vectors, in one call that is billed', async () => {
  const answer = await client.models.embedContent({
    model: MODEL,
    contents: ['the red road', 'fish'],
    config: { outputDimensionality: 64, taskType: 'RETRIEVAL_DOCUMENT' },
  });
  expect(asked()).toEqual({
    model: 'upstream-vectors',
    input: ['the red road', 'fish'],
    encoding_format: 'float',
    dimensions: 64,
  });
  expect(answer.embeddings!.map(({ values }) => values!.length)).toEqual([64, 64]);
  const headers = answer.sdkHttpResponse!.headers!;
  expect(headers['x-tollgate-dropped']).toBe('taskType');
  const { promptTokenCount, cost } = answer.usageMetadata as { promptTokenCount: number; cost: number };
  expect(cost).toBe(promptTokenCount / 1e6);
  expect(await spine.generation(headers['x-generation-id']!)).toMatchObject({
    state: 'settled',
    cost_micro_usdc: promptTokenCount,
  });
});

test('one text has one vector, and a repeat is not charged again', async () => {
  const before = await spine.balance();
  const content = { content: { parts: [{ text: 'the red' }, { text: 'road' }] } };
  const [first, again] = await post('embedContent', content, { 'idempotency-key': 'once' }).then(async (one) => [
    one,
    await post('embedContent', content, { 'idempotency-key': 'once' }),
  ]);
  const said = (await first!.json()) as { embedding: { values: number[] }; usageMetadata: { cost: number } };
  expect(said.embedding.values.length).toBeGreaterThan(8);
  expect(asked()['input']).toEqual(['the red\nroad']);
  expect(await again!.json()).toEqual(said);
  expect(again!.headers.get('idempotent-replayed')).toBe('true');
  expect(Number(before.available - (await spine.balance()).available) / 1e6).toBeCloseTo(said.usageMetadata.cost, 6);
});

test('a provider that answers with base64 is understood, and the order is that of the texts', async () => {
  const base64 = (...numbers: number[]) => Buffer.from(new Float32Array(numbers).buffer).toString('base64');
  upstream.answer = () => ({
    body: {
      object: 'list',
      model: 'm',
      usage: { prompt_tokens: 2, total_tokens: 2 },
      data: [
        { object: 'embedding', index: 1, embedding: base64(0.5, 0.25) },
        { object: 'embedding', index: 0, embedding: base64(1, 2) },
      ],
    },
  });
  const { embeddings }: EmbedContentResponse = await client.models.embedContent({ model: MODEL, contents: ['a', 'b'] });
  expect(embeddings).toEqual([{ values: [1, 2] }, { values: [0.5, 0.25] }]);
  upstream.answer = (body) => ({ body: embed(body) });
});

test.each([
  [
    'embedContent',
    { content: { parts: [{ inlineData: { mimeType: 'image/png', data: 'AAAA' } }] } },
    422,
    'must be text',
  ],
  ['embedContent', { content: { parts: [] } }, 400, 'content.parts must be'],
  ['embedContent', {}, 400, 'content'],
  ['batchEmbedContents', { requests: [] }, 400, 'requests must be'],
  [
    'batchEmbedContents',
    {
      requests: [
        { content: { parts: [{ text: 'a' }] }, outputDimensionality: 8 },
        { content: { parts: [{ text: 'a' }] } },
      ],
    },
    400,
    'one outputDimensionality',
  ],
  [
    'batchEmbedContents',
    { requests: [{ model: 'models/x', content: { parts: [{ text: 'a' }] } }] },
    400,
    'requests[0].model',
  ],
])('%s refuses %j', async (method, body, status, words) => {
  const reply = await post(method, body);
  expect(reply.status).toBe(status);
  const { error } = (await reply.json()) as { error: { status: string; message: string } };
  expect(error.status).toBe('INVALID_ARGUMENT');
  expect(error.message).toContain(words);
});

test('a chat model makes none', async () => {
  await expect(client.models.embedContent({ model: 'test/model', contents: 'a' })).rejects.toMatchObject({
    status: 422,
  });
  await expect(client.models.generateContent({ model: MODEL, contents: 'a' })).rejects.toMatchObject({ status: 422 });
});
