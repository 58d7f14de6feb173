import { OpenRouter } from '@openrouter/sdk';
import { createOpenRouter } from '@openrouter/ai-sdk-provider';
import { experimental_generateVideo as generateVideo, generateImage } from 'ai';
import OpenAI from 'openai';
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { imageBlock, paintAsAsked, png, startImageProvider } from '../media/support/image-provider.ts';
import { startVideoProvider, videoBlock } from '../media/support/video-provider.ts';
import { sendRaw } from '../support/raw-http.ts';
import { UNHURRIED } from '../support/spine.ts';
import { ofFile, spineOfFile } from '../support/of-file.ts';

// Images and videos as OpenRouter's clients use them: its SDK, which parses every answer strictly, and its provider for
// the AI SDK. OpenAI's client uses the same addresses of videos, and gets its own form.

const SMALL = `data:image/png;base64,${png(8, 8).toString('base64')}`;

/** A video in OpenRouter's form. */
interface Shown {
  readonly id: string;
  readonly status: string;
  readonly polling_url: string;
  readonly unsigned_urls?: readonly string[];
}

let client: OpenRouter;
let provider: ReturnType<typeof createOpenRouter>;
let openai: OpenAI;
const painter = ofFile(startImageProvider, (one) => one.close());
const filmer = ofFile(startVideoProvider, (one) => one.close());
const spine = spineOfFile(() => {
  const { url } = painter;
  const images =
    imageBlock({ url, params: 'edits = true', lines: 'supported_params = ["size", "seed"]' }) +
    imageBlock({
      url,
      name: 'test/streams',
      provider: 'Streams',
      lines: 'supported_params = ["stream", "partial_images"]',
    });
  const videos = videoBlock({
    url: filmer.url,
    lines:
      'durations = ["4s", "8s"]\nsupported_params = ["image_url", "end_image_url", "reference_image_urls", "seed"]',
  });
  return { toml: `${UNHURRIED}[media]\nfree_bytes_min = 0\n${images}${videos}` };
});
beforeAll(() => {
  client = new OpenRouter({ serverURL: spine.url, apiKey: spine.key, retryConfig: { strategy: 'none' } });
  provider = createOpenRouter({ baseURL: spine.url, apiKey: spine.key });
  openai = new OpenAI({ baseURL: spine.url, apiKey: spine.key, maxRetries: 0 });
});
beforeEach(() => {
  painter.answer(paintAsAsked);
  filmer.begin(() => ({}));
});
afterEach(async () => expect(await spine.faults()).toEqual([]));

describe('images', () => {
  test('of a prompt, with what was charged', async () => {
    const before = await spine.balance();
    const answer = await client.images.generate({
      imageGenerationRequest: { model: 'test/paint', prompt: 'A tollgate', n: 2, size: '1536x1024' },
    });
    if (!('data' in answer)) throw new Error('it streamed');
    expect(answer.data.map(({ b64Json }) => Buffer.from(b64Json, 'base64').equals(png(1536, 1024)))).toEqual([
      true,
      true,
    ]);
    expect(answer.data[0]!.mediaType).toBe('image/png');
    expect(answer.usage).toMatchObject({
      cost: 0.08,
      promptTokens: 0,
      completionTokens: 0,
      totalTokens: 0,
      costDetails: { upstreamInferenceCompletionsCost: 0.08 },
    });
    expect(before.available - (await spine.balance()).available).toBe(80_000n);
  });

  test('of other images', async () => {
    const answer = await client.images.generate({
      imageGenerationRequest: {
        model: 'test/paint',
        prompt: 'Lower the bar',
        inputReferences: [{ type: 'image_url', imageUrl: { url: SMALL } }],
      },
    });
    expect('data' in answer && answer.data).toHaveLength(1);
    const { path, form } = painter.requests.at(-1)!;
    expect([path, form!.get('image')]).toEqual(['/v1/images/edits', expect.any(File)]);
  });

  test('a stream of a provider that streams, and of one that does not', async () => {
    const events = async (model: string) => {
      const stream = await client.images.generate({
        imageGenerationRequest: { model, prompt: 'A tollgate', stream: true },
      });
      if ('data' in stream) throw new Error('it did not stream');
      return Array.fromAsync(stream);
    };
    const b64 = png(64, 64).toString('base64');
    painter.answer((_request, response) => {
      const event = (value: object) => `data: ${JSON.stringify(value)}\n\n`;
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(event({ type: 'image_generation.partial_image', partial_image_index: 0, b64_json: b64 }));
      response.end(event({ type: 'image_generation.completed', b64_json: b64 }));
    });
    expect(await events('test/streams')).toMatchObject([
      { type: 'image_generation.partial_image', partialImageIndex: 0, b64Json: b64 },
      { type: 'image_generation.completed', b64Json: b64, mediaType: 'image/png', usage: { cost: 0.04 } },
    ]);
    painter.answer(paintAsAsked);
    const [completed, ...more] = await events('test/paint');
    expect([completed, more]).toMatchObject([{ type: 'image_generation.completed', b64Json: b64 }, []]);
    expect(painter.requests.at(-1)!.body).not.toHaveProperty('stream');
  });

  test('a stream that breaks has an error that the client reads', async () => {
    const seen = Promise.withResolvers<void>();
    painter.answer(async (_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      const b64 = png(64, 64).toString('base64');
      const partial = { type: 'image_generation.partial_image', partial_image_index: 0, b64_json: b64 };
      response.write(`data: ${JSON.stringify(partial)}\n\n`);
      await seen.promise;
      response.end(`data: ${JSON.stringify({ type: 'error', error: { message: 'no paint', code: 'broke' } })}\n\n`);
    });
    const stream = await client.images.generate({
      imageGenerationRequest: { model: 'test/streams', prompt: 'A', stream: true },
    });
    if ('data' in stream) throw new Error('it did not stream');
    const events: unknown[] = [];
    for await (const event of stream) {
      events.push(event);
      seen.resolve();
    }
    expect(events.at(-1)).toMatchObject({
      type: 'error',
      error: { code: 'provider_unavailable', message: expect.any(String) as string },
    });
  });

  test.each([
    [{ images: [SMALL] }, 'images', /^images is not a field of this address: send images as input_references/],
    [
      { input_references: [{ image_url: { url: 'x' } }] },
      'input_references[0].image_url',
      /must be an https URL or a data/,
    ],
    [{ size: '2K', resolution: '4K' }, 'size', /^size 2K and resolution 4K differ/],
    [{ size: 'large' }, 'size', /^size must be auto, a tier such as 2K/],
  ])('%j is refused by name', async (more, param, message) => {
    const response = await spine.post('/images', { model: 'test/paint', prompt: 'A', ...more });
    expect([response.status, await response.json()]).toMatchObject([
      400,
      { error: { param, message: expect.stringMatching(message) as string } },
    ]);
  });

  test('the AI SDK makes one', async () => {
    const { images } = await generateImage({
      model: provider.imageModel('test/paint'),
      prompt: { text: 'Lower the bar', images: [png(8, 8)] },
      size: '64x64',
    });
    expect(Buffer.from(images[0]!.uint8Array)).toEqual(png(64, 64));
  });
});

describe('videos', () => {
  const generate = (more: object = {}) =>
    client.videoGeneration.generate({
      videoGenerationRequest: { model: 'test/film', prompt: 'A tollgate', duration: 4, ...more },
    });

  test('are begun, shown and fetched', async () => {
    const begun = await generate();
    expect(begun).toMatchObject({ status: 'pending', pollingUrl: `${spine.url}/videos/${begun.id}` });
    expect(begun).not.toHaveProperty('error');
    const poll = () => client.videoGeneration.getGeneration({ jobId: begun.id });
    await expect.poll(async () => (await poll()).status, { timeout: 60_000 }).toBe('completed');
    const done = await poll();
    expect(done).toMatchObject({
      id: begun.id,
      generationId: begun.generationId,
      unsignedUrls: [`${begun.pollingUrl}/content?index=0`],
      usage: { cost: 0.45, isByok: false },
    });
    const content = await client.videoGeneration.getVideoContent({ jobId: begun.id });
    expect(Buffer.from(await new Response(content).arrayBuffer())).toEqual(filmer.last().file);
    const fetched = await fetch(done.unsignedUrls![0]!, { headers: { authorization: `Bearer ${spine.key}` } });
    expect(Buffer.from(await fetched.arrayBuffer())).toEqual(filmer.last().file);
  });

  test('have addresses without a host where the host may be a stranger’s', async () => {
    const authorization = `authorization: Bearer ${spine.key}\r\nconnection: close\r\n`;
    const at = async (host: string) => {
      const body = JSON.stringify({ model: 'test/film', prompt: 'A tollgate', duration: 4 });
      const begun = await sendRaw(
        spine.origin,
        `POST /api/v1/videos HTTP/1.1\r\nhost: ${host}\r\n${authorization}content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
      );
      const { id, polling_url: first } = JSON.parse(begun.body) as Shown;
      const show = async () => {
        const shown = await sendRaw(
          spine.origin,
          `GET /api/v1/videos/${id} HTTP/1.1\r\nhost: ${host}\r\n${authorization}\r\n`,
        );
        return JSON.parse(shown.body) as Shown;
      };
      await expect.poll(async () => (await show()).status, { timeout: 60_000 }).toBe('completed');
      const { polling_url: later, unsigned_urls: files } = await show();
      return [first, later, ...files!].map((url) => url.replace(id, 'ID'));
    };
    const addresses = (origin: string) => {
      const url = `${origin}/api/v1/videos/ID`;
      return [url, url, `${url}/content?index=0`];
    };
    expect(await at('evil.example')).toEqual(addresses(''));
    expect(await at('gateway:8402')).toEqual(addresses('http://gateway:8402'));
  });

  test('that fail say why', async () => {
    filmer.begin(() => ({ status: 'failed', error: { code: 'moderation', message: 'No such films' } }));
    const { id } = await generate();
    const poll = () => client.videoGeneration.getGeneration({ jobId: id });
    await expect.poll(async () => (await poll()).status, { timeout: 60_000 }).toBe('failed');
    expect(await poll()).toMatchObject({ status: 'failed', error: 'No such films' });
  });

  test('frames and references reach the provider', async () => {
    const frame = (frameType: 'first_frame' | 'last_frame') => ({
      type: 'image_url' as const,
      frameType,
      imageUrl: { url: SMALL },
    });
    const { id } = await generate({
      frameImages: [frame('first_frame'), frame('last_frame')],
      inputReferences: [{ type: 'image_url', imageUrl: { url: SMALL } }],
    });
    const { body } = filmer.requests.findLast(({ method }) => method === 'POST')!;
    expect(body).toMatchObject({ input_reference: expect.anything(), end_image: expect.anything(), seconds: '4' });
    expect(Object.keys(body).some((name) => name.startsWith('reference_images'))).toBe(true);
    await expect
      .poll(async () => (await client.videoGeneration.getGeneration({ jobId: id })).status, { timeout: 60_000 })
      .toBe('completed');
  });

  test.each([
    [
      { frame_images: [{ frame_type: 'middle', image_url: SMALL }] },
      'frame_images[0].frame_type',
      /must be one of first_frame, last_frame/,
    ],
    [{ frame_images: 'x' }, 'frame_images', /^frame_images must be a list of at most two objects/],
    [{ input_references: [{ type: 'text' }] }, 'input_references[0]', /type must be image_url, video_url or audio_url/],
    [
      { input_references: [{ type: 'image_url', image_url: { url: 'x' } }] },
      'input_references[0].image_url',
      /^input_references\[0\]\.image_url must be an https URL or a data URL/,
    ],
    [
      { frame_images: [{ frame_type: 'last_frame', image_url: { url: 'x' } }] },
      'frame_images[0].image_url',
      /^frame_images\[0\]\.image_url must be an https URL or a data URL/,
    ],
    [{ duration: 'long' }, 'duration', /^duration must be a length such as 5s/],
  ])('%j is refused by name', async (more, param, message) => {
    const response = await spine.post('/videos', { model: 'test/film', prompt: 'A', ...more });
    expect([response.status, await response.json()]).toMatchObject([
      400,
      { error: { param, message: expect.stringMatching(message) as string } },
    ]);
  });

  test('the form of the request decides the form of the answer, and below /v1 it is OpenAI’s', async () => {
    const begin = async (origin: string, more: object, headers: Record<string, string> = {}) => {
      const response = await fetch(`${origin}/videos`, {
        method: 'POST',
        headers: { authorization: `Bearer ${spine.key}`, 'content-type': 'application/json', ...headers },
        body: JSON.stringify({ model: 'test/film', prompt: 'A', ...more }),
      });
      const { id, status } = (await response.json()) as { id: string; status: string };
      const shown = await fetch(`${origin}/videos/${id}`, { headers: { authorization: `Bearer ${spine.key}` } });
      return [response.status, status, 'polling_url' in ((await shown.json()) as object)];
    };
    const ofOpenai = [200, 'queued', false];
    const ofOpenrouter = [202, 'pending', true];
    const strict = `${spine.origin}/v1`;
    expect(await begin(spine.url, { duration: 4 })).toEqual(ofOpenrouter);
    expect(await begin(spine.url, {}, { 'user-agent': 'ai-sdk/openrouter/3.1.0' })).toEqual(ofOpenrouter);
    expect(await begin(spine.url, { seconds: '4' }, { 'user-agent': 'ai-sdk/openrouter/3.1.0' })).toEqual(ofOpenai);
    expect(await begin(spine.url, {})).toEqual(ofOpenai);
    expect(await begin(strict, { duration: 4 })).toEqual(ofOpenai);
    for (const job of filmer.jobs.values()) job.status = 'completed';
  });

  test('OpenAI’s client gets OpenAI’s form at the same address', async () => {
    const video = await openai.videos.create({ model: 'test/film', prompt: 'A tollgate' });
    expect(video).toMatchObject({ object: 'video', status: 'queued', error: null });
    await expect
      .poll(async () => (await openai.videos.retrieve(video.id)).status, { timeout: 60_000 })
      .toBe('completed');
  });

  test('the AI SDK makes one', async () => {
    const { videos, providerMetadata } = await generateVideo({
      model: provider.videoModel('test/film', { pollIntervalMs: 200 }),
      prompt: 'A tollgate',
      duration: 4,
      // The files of a video need the key, and the AI SDK by itself sends none to their addresses.
      async download({ url }) {
        const file = await fetch(url, { headers: { authorization: `Bearer ${spine.key}` } });
        return { data: await file.bytes(), mediaType: file.headers.get('content-type') ?? undefined };
      },
    });
    expect(Buffer.from(videos[0]!.uint8Array)).toEqual(filmer.last().file);
    expect(providerMetadata['openrouter']).toMatchObject({
      cost: 0.45,
      generationId: expect.stringMatching(/^gen-/) as string,
    });
  });
});
