import Anthropic from '@anthropic-ai/sdk';
import { OpenRouter } from '@openrouter/sdk';
import OpenAI from 'openai';
import { beforeAll, describe, expect, test } from 'vitest';
import { imageBlock } from '../media/support/image-provider.ts';
import { videoBlock } from '../media/support/video-provider.ts';
import { modelBlock, MODEL, UNHURRIED } from '../support/spine.ts';
import { spineOfFile } from '../support/of-file.ts';

// Models of images, videos and embeddings, as the lists of OpenAI's and OpenRouter's clients have them.

const NOWHERE = 'http://127.0.0.1:9/v1';
const OTHERS = ['test/film', 'test/paint', 'test/vectors'];

let openai: OpenAI;
let strict: OpenAI;
let openrouter: OpenRouter;
const spine = spineOfFile(() => {
  const vectors = modelBlock({ name: 'test/vectors', provider: 'Vectors', url: NOWHERE }).replace(
    'display_name',
    'output_modalities = ["embeddings"]\ndisplay_name',
  );
  const paint = imageBlock({
    url: NOWHERE,
    lines: 'aspect_ratios = ["1:1", "16:9"]\nsupported_params = ["seed", "stream", "aspect_ratio"]',
    pricing: 'resolutions = { "2K" = 0.08 }\nedit = 0.05\ninput_image = 0.01',
    params: 'edits = true',
  });
  return { toml: UNHURRIED + vectors + paint + videoBlock({ url: NOWHERE }) };
});
beforeAll(() => {
  openai = new OpenAI({ baseURL: spine.url, apiKey: spine.key, maxRetries: 0 });
  strict = new OpenAI({ baseURL: `${spine.origin}/v1`, apiKey: spine.key, maxRetries: 0 });
  openrouter = new OpenRouter({ serverURL: spine.url, apiKey: spine.key, retryConfig: { strategy: 'none' } });
});

const namesOf = (models: readonly { readonly id: string }[]) => models.map(({ id }) => id).toSorted();

describe('OpenAI’s client', () => {
  test.each(OTHERS)('retrieves %s', async (name) => {
    const model = await openai.models.retrieve(name);
    expect(model).toMatchObject({ id: name, object: 'model', owned_by: expect.any(String) as string });
    expect(await strict.models.retrieve(name)).toEqual(model);
  });

  test('an entry tells what is paid for', async () => {
    expect(await openai.models.retrieve('test/paint')).toMatchObject({
      architecture: { input_modalities: ['text', 'image'], output_modalities: ['image'] },
      pricing: { prompt: '0', completion: '0', generation: 0.04, resolutions: { '2K': 0.08 }, edit: 0.05 },
      providers: [{ name: 'Painter', pricing: { generation: 0.04 } }],
      constraints: { aspect_ratios: ['1:1', '16:9'] },
    });
    expect(await openai.models.retrieve('test/film')).toMatchObject({
      architecture: { modality: 'text+image->video' },
      pricing: { per_second: { '720p': 0.1, '1080p': 0.2 }, base: 0.05 },
    });
  });

  test('below /v1 the list has the models of all kinds, below /api/v1 the chat models of the contract', async () => {
    expect(namesOf((await strict.models.list()).data)).toEqual([...OTHERS, MODEL].toSorted());
    expect(namesOf((await openai.models.list()).data)).toEqual([MODEL]);
    const counted = await spine.get('/models/count');
    expect(await counted.json()).toEqual({ data: { count: 1 } });
    // Each list of `type=all` has its kind, and no list but `data` has room for embeddings.
    const all = (await (await spine.get('/models?type=all')).json()) as { data: { id: string }[] };
    expect(namesOf(all.data)).toEqual([MODEL, 'test/vectors'].toSorted());
  });

  test.each([
    ['all', [...OTHERS, MODEL]],
    ['image', ['test/paint']],
    ['video,image', ['test/film', 'test/paint']],
    ['embeddings', ['test/vectors']],
    ['text', [MODEL]],
    ['speech', []],
  ])('output_modalities=%s selects from both lists', async (modalities, expected) => {
    const query = { output_modalities: modalities };
    expect(namesOf((await openai.models.list({ query })).data)).toEqual(expected.toSorted());
    expect(namesOf((await strict.models.list({ query })).data)).toEqual(expected.toSorted());
    const counted = await spine.get(`/models/count?output_modalities=${modalities}`);
    expect(await counted.json()).toEqual({ data: { count: expected.length } });
  });

  test('a model of embeddings lists the fields that embeddings take, and no choice of tools', async () => {
    const taken = ['dimensions', 'encoding_format', 'user'];
    expect(await openai.models.retrieve('test/vectors')).toMatchObject({ supported_parameters: taken });
    const answer = await spine.get('/models/test/vectors/endpoints');
    expect(await answer.json()).toMatchObject({
      data: { endpoints: [{ supported_parameters: taken, supports_tool_choice: { auto: false, none: false } }] },
    });
  });

  test('pages of the list keep the selection', async () => {
    const seen: string[] = [];
    let path: string | null = '/models?output_modalities=all&limit=1';
    while (path !== null) {
      const page = (await (await spine.get(path)).json()) as { data: { id: string }[]; links: { next: string | null } };
      seen.push(...page.data.map(({ id }) => id));
      path = page.links.next?.replace('/api/v1', '') ?? null;
    }
    expect(seen.toSorted()).toEqual([...OTHERS, MODEL].toSorted());
  });

  test.each([
    ['output_modalities=imges', /^output_modalities must be all, or some of text, image, /],
    ['output_modalities=image&type=all', /^Send only one of type and output_modalities/],
  ])('%s is refused by name', async (query, message) => {
    const response = await spine.get(`/models?${query}`);
    expect([response.status, await response.json()]).toMatchObject([
      400,
      { error: { param: 'output_modalities', message: expect.stringMatching(message) as string } },
    ]);
  });

  test('an unknown model is still 404 by its name', async () => {
    await expect(openai.models.retrieve('test/none')).rejects.toMatchObject({
      status: 404,
      type: 'invalid_model',
      message: expect.stringContaining('Model not found: test/none') as string,
    });
  });
});

test('Anthropic’s client lists chat models alone, because it has no other call', async () => {
  const anthropic = new Anthropic({ baseURL: `${spine.origin}/api`, apiKey: spine.key, maxRetries: 0 });
  expect(namesOf((await anthropic.models.list()).data)).toEqual([expect.stringContaining(MODEL)]);
});

describe('OpenRouter’s client', () => {
  test('lists and shows models of all kinds', async () => {
    const names: string[] = [];
    for await (const { result } of await openrouter.models.list({ outputModalities: 'all' }))
      names.push(...namesOf(result.data));
    expect(names.toSorted()).toEqual([...OTHERS, MODEL].toSorted());
    expect((await openrouter.models.get({ author: 'test', slug: 'paint' })).data.id).toBe('test/paint');
  });

  test.each([
    ['paint', 'image', 'Painter', { generation: 0.04, resolutions: { '2K': 0.08 }, edit: 0.05, input_image: 0.01 }],
    ['film', 'video', 'Filmer', { per_second: { '720p': 0.1, '1080p': 0.2 }, base: 0.05 }],
  ])('the providers of %s, as of a chat model', async (slug, output, provider, pricing) => {
    const { data } = await openrouter.endpoints.list({ author: 'test', slug });
    expect(data).toMatchObject({
      id: `test/${slug}`,
      architecture: { outputModalities: [output] },
      endpoints: [{ providerName: provider, pricing: { prompt: '0', completion: '0' }, status: 0 }],
    });
    const { links } = (await openai.models.retrieve(`test/${slug}`)) as unknown as { links: { details: string } };
    const answer = await spine.get(links.details.replace('/api/v1', ''));
    expect(await answer.json()).toMatchObject({
      data: { endpoints: [{ health: 'untried', pricing, supports_tool_choice: { auto: false } }] },
    });
  });

  test('image models, with their providers and prices', async () => {
    const { data } = await openrouter.images.listModels();
    expect(data).toMatchObject([
      {
        id: 'test/paint',
        name: 'Test: Paint',
        architecture: { inputModalities: ['text', 'image'], outputModalities: ['image'] },
        supportedParameters: { seed: { type: 'boolean' }, aspect_ratio: { type: 'enum', values: ['1:1', '16:9'] } },
        supportsStreaming: true,
      },
    ]);
    const { id, endpoints } = await openrouter.images.listModelEndpoints({ author: 'test', slug: 'paint' });
    expect([id, endpoints[0]!.providerName]).toEqual(['test/paint', 'Painter']);
    expect(endpoints[0]!.pricing).toEqual([
      { billable: 'output_image', unit: 'image', costUsd: 0.04 },
      { billable: 'output_image', unit: 'image', variant: '2K', costUsd: 0.08 },
      { billable: 'output_image', unit: 'image', variant: 'edit', costUsd: 0.05 },
      { billable: 'input_image', unit: 'image', costUsd: 0.01 },
    ]);
    expect((await spine.get(data[0]!.endpoints.replace('/api/v1', ''))).status).toBe(200);
  });

  test('video models', async () => {
    const { data } = await openrouter.videoGeneration.listVideosModels();
    expect(data).toMatchObject([
      {
        id: 'test/film',
        supportedDurations: [4, 8],
        supportedFrameImages: ['first_frame'],
        seed: true,
        generateAudio: false,
        pricingSkus: { per_second_720p: '0.1', per_second_1080p: '0.2', base: '0.05' },
      },
    ]);
  });

  test('embedding models', async () => {
    const names: string[] = [];
    for await (const { result } of await openrouter.embeddings.listModels()) names.push(...namesOf(result.data));
    expect(names).toEqual(['test/vectors']);
  });
});
