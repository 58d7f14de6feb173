import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { LLMock } from '@copilotkit/aimock';
import { generateImage } from 'ai';
import OpenAI, { toFile } from 'openai';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { startSpine, UNHURRIED, type Spine } from '../support/spine.ts';
import { imageBlock, png } from './support/image-provider.ts';

// A provider and a client that others wrote: aimock's images, and the AI SDK.

const image = png(64, 64);
const mock = new LLMock({ port: 0 });
let spine: Spine;
beforeAll(async () => {
  await mock.start();
  mock.onImage(/gate/i, { images: [1, 2].map(() => ({ b64Json: image.toString('base64') })) });
  spine = await startSpine({
    toml: UNHURRIED + imageBlock({ url: `${mock.url}/v1`, model: 'gpt-image-1', params: 'edits = true' }),
  });
});
afterAll(async () => {
  await spine.stop();
  await mock.stop();
});
afterEach(async () => expect(await spine.faults()).toEqual([]));

const spent = async (act: () => Promise<void>) => {
  const before = await spine.balance();
  await act();
  return before.available - (await spine.balance()).available;
};

test('generateImage of the AI SDK gets images, and is charged for them', async () => {
  const sdk = createOpenAICompatible({ name: 'tollgate', baseURL: spine.url, apiKey: spine.key });
  const charged = await spent(async () => {
    const { images } = await generateImage({ model: sdk.imageModel('test/paint'), prompt: 'A tollgate', n: 2 });
    expect(images.map(({ uint8Array }) => Buffer.from(uint8Array).equals(image))).toEqual([true, true]);
  });
  expect(charged).toBe(80_000n);
});

test('the SDK of OpenAI edits an image', async () => {
  const client = new OpenAI({ baseURL: spine.url, apiKey: spine.key, maxRetries: 0 });
  const charged = await spent(async () => {
    const { data } = await client.images.edit({
      model: 'test/paint',
      prompt: 'Open the gate',
      image: await toFile(image, 'gate.png'),
    });
    expect(Buffer.from(data![0]!.b64_json!, 'base64')).toEqual(image);
  });
  expect(charged).toBe(40_000n);
});
