import { expect, it } from 'vitest';
import { parseRates } from '#billing/amounts';
import type { MediaFacts, Primitive } from '#config';
import { createCatalog, type Offer } from '#catalog';
import { anonymousAt } from '#accounts';
import { createServer } from '#http';
import { modelsRoutes } from '../../src/openai/models/models-routes.ts';
import { LIMITS } from './support/gateway.ts';
import { makeOffer } from './support/offers.ts';

const MEDIA: MediaFacts = {
  upstreamModel: 'upstream',
  supportedParams: [],
  aspectRatios: [],
  formats: [],
  resolutions: [],
  durations: [],
};

function mediaOffer(
  primitive: Primitive,
  provider: string,
  pricing: object,
  media: Partial<MediaFacts>,
  variants: Readonly<Record<string, object>> = {},
): Offer {
  const model = makeOffer({ provider, service: 'acme/art', pricing: pricing as Record<string, unknown> });
  return {
    ...model,
    id: `${primitive}/${model.id}`,
    primitive,
    model: null,
    media: { ...MEDIA, ...media },
    variants: Object.fromEntries(
      Object.entries(variants).map(([name, of]) => [
        name,
        { id: name, rates: parseRates(of as Record<string, unknown>) },
      ]),
    ),
  };
}

async function list(offers: readonly Offer[], url = '/models?type=all') {
  const catalog = createCatalog();
  catalog.replace('test', offers);
  const server = createServer({ limits: LIMITS, onError: () => {} });
  const health = {
    failing: () => false,
    available: () => true,
    stats: () => Promise.reject(new Error('not asked for')) as never,
    compliance: () => 1,
  };
  const admit = async () => Promise.reject(new Error('the pages of this test are public'));
  const visitor = (_headers: object, address: string) => anonymousAt(address);
  await server.register(modelsRoutes({ catalog, health, registry: { locate: () => null }, admit, visitor }));
  return (await server.inject({ url })).json<{
    image_models: unknown[];
    video_models: unknown[];
    agents: unknown[];
    tools: unknown[];
  }>();
}

it('an image model has exactly the fields of the contract, with what any of its providers can and the price of the cheapest', async () => {
  const { image_models: images } = await list([
    mediaOffer(
      'image',
      'dear',
      { image: 0.08 },
      { supportedParams: ['seed', 'style'], aspectRatios: ['1:1'], formats: ['png'] },
    ),
    mediaOffer(
      'image',
      'cheap',
      { image: 0.04 },
      { supportedParams: ['seed'], aspectRatios: ['1:1', '16:9'], formats: ['webp'] },
      { '2K': { image: 0.06 } },
    ),
  ]);
  expect(images).toEqual([
    {
      id: 'acme/art',
      name: 'acme/art',
      providers: ['dear', 'cheap'],
      supported_params: ['seed', 'style'],
      constraints: { aspect_ratios: ['1:1', '16:9'], formats: ['png', 'webp'] },
      pricing: { generation: 0.04, resolutions: { '2K': 0.06 } },
    },
  ]);
  expect((await list([mediaOffer('image', 'plain', { image: 0.5 }, {})])).image_models).toMatchObject([
    { pricing: { generation: 0.5 } },
  ]);
});

it('a video model has exactly the fields of the contract', async () => {
  const prices = {
    '480p': { second: 0.1 },
    '480p+audio': { second: 0.15 },
    '1080p': { second: 0.2 },
    '1080p+audio': { second: 0.3 },
  };
  const media = {
    supportedParams: ['seed', 'image_url'],
    resolutions: ['480p', '1080p'],
    durations: ['5s', '10s'],
    aspectRatios: ['16:9'],
  };
  const { video_models: videos } = await list([
    mediaOffer('video', 'dear', { second: 0.9 }, { durations: ['15s'] }, { '720p': { second: 0.9 } }),
    mediaOffer('video', 'cheap', { second: 0.3, call: 0.05 }, media, prices),
  ]);
  expect(videos).toEqual([
    {
      id: 'acme/art',
      name: 'acme/art',
      providers: ['dear', 'cheap'],
      model_type: 'image-to-video',
      supported_params: ['seed', 'image_url'],
      constraints: { resolutions: ['480p', '1080p'], durations: ['15s', '5s', '10s'], aspect_ratios: ['16:9'] },
      pricing: { per_second: { '480p': 0.1, '1080p': 0.2 }, base: 0.05, audio_multiplier: 1.5 },
    },
  ]);
});

it.each([
  [[], 'text-to-video'],
  [['seed', 'negative_prompt'], 'text-to-video'],
  [['image_url', 'end_image_url'], 'image-to-video'],
  [['image_url', 'video_url'], 'video-to-video'],
])('a video model that heeds %j is %s', async (supportedParams, type) => {
  expect((await list([mediaOffer('video', 'p', { second: 1 }, { supportedParams })])).video_models).toMatchObject([
    { model_type: type },
  ]);
});

it('agents and tools say what they do and what they cost', async () => {
  const agent = { ...mediaOffer('agent', 'p', { call: 0.2 }, {}), media: null, description: 'Researches.' };
  const tool = { ...mediaOffer('tool', 'p', { call: 0.1 }, {}, { deep: { call: 0.5 } }), media: null };
  const { agents, tools } = await list([agent, tool], '/models');
  expect(agents).toMatchObject([
    {
      id: 'acme/art',
      object: 'agent',
      description: 'Researches.',
      providers: ['p'],
      pricing: { per_call: 0.2, prompt: null, completion: null },
    },
  ]);
  expect(tools).toMatchObject([
    {
      id: 'acme/art',
      object: 'tool',
      description: '',
      providers: ['p'],
      pricing: { per_call: 0.1, tools: { deep: 0.5 } },
    },
  ]);
});
