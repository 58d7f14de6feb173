import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { LLMock } from '@copilotkit/aimock';
import { generateImage } from 'ai';
import OpenAI, { toFile } from 'openai';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { startSpine, UNHURRIED, type Spine } from '../support/spine.ts';
import { imageBlock, png } from './support/image-provider.ts';
import { tinyMp4 } from './support/tiny-mp4.ts';
import { videoBlock } from './support/video-provider.ts';

// A provider and a client that others wrote: aimock's images and videos, and the AI SDK.

const image = png(64, 64);
const film = tinyMp4(4);
const mock = new LLMock({ port: 0 });
let spine: Spine;
beforeAll(async () => {
  await mock.start();
  mock.onImage(/gate/i, { images: [1, 2].map(() => ({ b64Json: image.toString('base64') })) });
  mock.onVideo(/gate/i, { video: { id: 'vid_1', status: 'completed', b64: film.toString('base64') } });
  mock.onVideo(/bridge/i, { video: { id: 'vid_2', status: 'failed', error: 'The river was too wide' } });
  const images = imageBlock({ url: `${mock.url}/v1`, model: 'gpt-image-1', params: 'edits = true' });
  // Its own `/v1/videos` has no files to fetch; where it speaks as OpenRouter does, it has.
  const videos = videoBlock({ url: `${mock.url}/api/v1` });
  const toOpenai = videoBlock({ url: `${mock.url}/v1`, name: 'test/reel', provider: 'Reeler' });
  spine = await startSpine({ toml: `${UNHURRIED}[media]\nfree_bytes_min = 0\n${images}${videos}${toOpenai}` });
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

const videoOf = async (client: OpenAI, id: string) => {
  const stands = async () => (await client.videos.retrieve(id)).status;
  await expect.poll(stands, { timeout: 60_000, interval: 200 }).toMatch(/completed|failed/);
  return client.videos.retrieve(id);
};

test('the SDK of OpenAI gets a video by jobs that are told as OpenRouter tells them', async () => {
  const client = new OpenAI({ baseURL: spine.url, apiKey: spine.key, maxRetries: 0 });
  const charged = await spent(async () => {
    const begun = await client.videos.create({ model: 'test/film', prompt: 'A tollgate', seconds: '4' });
    expect(await videoOf(client, begun.id)).toMatchObject({ status: 'completed' });
    const content = await client.videos.downloadContent(begun.id);
    expect(Buffer.from(await content.arrayBuffer())).toEqual(film);
  });
  expect(charged).toBe(450_000n);
});

test.each(['test/film', 'test/reel'])('a video of %s that fails is free', async (model) => {
  const client = new OpenAI({ baseURL: spine.url, apiKey: spine.key, maxRetries: 0 });
  const charged = await spent(async () => {
    const begun = await client.videos.create({ model, prompt: 'A bridge', seconds: '4' });
    expect(await videoOf(client, begun.id)).toMatchObject({ status: 'failed', error: { code: 'generation_failed' } });
  });
  expect(charged).toBe(0n);
});
