import OpenAI from 'openai';
import { afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { UNHURRIED } from '../support/spine.ts';
import { imageBlock, json, paintAsAsked, png, startImageProvider } from './support/image-provider.ts';
import { ofFile, spineOfFile } from '../support/of-file.ts';

// `/images/generations`, as OpenAI's own client uses it.

let client: OpenAI;
const provider = ofFile(startImageProvider, (one) => one.close());
const spine = spineOfFile(() => {
  const { url } = provider;
  return {
    toml:
      UNHURRIED + imageBlock({ url }) + imageBlock({ url, name: 'test/gpt', provider: 'Gpt', model: 'gpt-image-2' }),
  };
});
beforeAll(() => {
  client = new OpenAI({ baseURL: spine.url, apiKey: spine.key, maxRetries: 0 });
});
beforeEach(() => {
  provider.answer(paintAsAsked);
});
afterEach(async () => expect(await spine.faults()).toEqual([]));

const sent = () => provider.requests.at(-1)!.body;

test('images.generate gets the images in base64, and is charged for them', async () => {
  const before = await spine.balance();
  const answer = await client.images.generate({
    model: 'test/paint',
    prompt: 'A tollgate',
    n: 2,
    size: '1536x1024',
    background: 'transparent',
    output_compression: 80,
  });
  expect(answer.data!.map(({ b64_json: image }) => Buffer.from(image!, 'base64').equals(png(1536, 1024)))).toEqual([
    true,
    true,
  ]);
  expect(answer).toMatchObject({ output_format: 'png', size: '1536x1024', usage: { images: 2, cost: 0.08 } });
  expect(before.available - (await spine.balance()).available).toBe(80_000n);
  expect(sent()).toMatchObject({ n: 2, size: '1536x1024', background: 'transparent', output_compression: 80 });
});

test('response_format url answers data URLs', async () => {
  const { data } = await client.images.generate({ model: 'test/paint', prompt: 'A', response_format: 'url' });
  expect(data![0]!.url).toMatch(/^data:image\/png;base64,/);
  const fetched = Buffer.from(await (await fetch(data![0]!.url!)).arrayBuffer());
  expect(fetched.equals(png(64, 64))).toBe(true);
  expect(sent()['response_format']).toBe('b64_json');
});

test('a model that answers base64 alone is not asked for it', async () => {
  provider.answer((_request, response) =>
    json(response, 200, {
      created: 1_700_000_000,
      data: [{ b64_json: png(64, 64).toString('base64'), revised_prompt: 'A better one' }],
      usage: {
        input_tokens: 5,
        input_tokens_details: { text_tokens: 5, image_tokens: 0 },
        output_tokens: 100,
        total_tokens: 105,
      },
    }),
  );
  const answer = await client.images.generate({ model: 'test/gpt', prompt: 'A' });
  expect(sent()).not.toHaveProperty('response_format');
  expect(answer.data![0]!.revised_prompt).toBe('A better one');
  expect(answer.usage).toMatchObject({
    input_tokens: 5,
    input_tokens_details: { text_tokens: 5, image_tokens: 0 },
    output_tokens: 100,
    total_tokens: 105,
    cost: 0.04,
  });
});

test('errors are those that the client knows', async () => {
  const failure = async (body: object): Promise<unknown> =>
    client.images.generate(body as OpenAI.ImageGenerateParams).catch((error: unknown) => error);
  expect(await failure({ model: 'test/none', prompt: 'A' })).toBeInstanceOf(OpenAI.NotFoundError);
  expect(await failure({ model: 'test/paint', prompt: 'A', n: 11 })).toMatchObject({
    status: 400,
    type: 'invalid_request',
    param: 'n',
  });
  expect(await failure({ model: 'test/paint', prompt: 'A', stream: true })).toMatchObject({
    status: 422,
    param: 'stream',
  });
  expect(await failure({ model: 'test/paint', prompt: 'A', style: 'vivid', partial_images: 2 })).toMatchObject({
    status: 400,
    param: 'partial_images',
  });
  provider.answer((_request, response) => json(response, 429, { error: { message: 'slow down' } }));
  expect(await failure({ model: 'test/paint', prompt: 'A' })).toBeInstanceOf(OpenAI.RateLimitError);
});
