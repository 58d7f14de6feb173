import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import {
  imageBlock,
  type Images,
  type ImageProvider,
  png,
  startImageProvider,
} from '../../../media/support/image-provider.ts';
import { dialIn, type DialledIn } from '../../../support/dial-in.ts';
import { startSpine, type Spine } from '../../../support/spine.ts';

// Images of a provider behind its firewall.

let spine: Spine;
let provider: ImageProvider;
let proxy: DialledIn;
beforeAll(async () => {
  provider = await startImageProvider();
  spine = await startSpine();
  const services = imageBlock({
    url: provider.url,
    name: 'far/paint',
    provider: 'Far',
    lines: 'supported_params = ["seed"]\nresolutions = ["1K", "2K"]',
    pricing: 'resolutions = { "2K" = 0.08 }\nvariants = { "2K/high" = 0.2 }',
  });
  proxy = await dialIn({ router: spine.origin, services });
});
afterAll(async () => {
  await proxy.close();
  await spine.stop();
  await provider.close();
});
afterEach(async () => expect(await spine.faults()).toEqual([]));

test('an image model is listed with its prices', async () => {
  const { image_models: listed } = (await (await spine.get('/models?type=image')).json()) as {
    image_models: unknown[];
  };
  expect(listed).toEqual([
    {
      id: 'far/paint',
      name: 'far/paint',
      providers: ['Far'],
      supported_params: ['seed'],
      constraints: { aspect_ratios: [], formats: [] },
      pricing: { generation: 0.04, resolutions: { '2K': 0.08 }, variants: { '2K/high': 0.2 } },
    },
  ]);
});

test.each(['far/paint', 'pinned'])('it is called as %s, charged, and its provider earns', async (name) => {
  const model = name === 'pinned' ? `${proxy.id}:far/paint` : name;
  const body = { model, prompt: 'A tollgate', size: '1536x1024', quality: 'high', n: 2, seed: 3 };
  const response = await spine.post('/image/generate', body);
  const { images, usage, provider_metadata: by } = (await response.json()) as Images;
  expect([response.status, by.provider, usage.cost]).toEqual([200, 'Far', 0.4]);
  for (const { data_url: url } of images)
    expect(Buffer.from(url.split(',')[1]!, 'base64').equals(png(1536, 1024))).toBe(true);
  expect(await spine.generation(response.headers.get('x-generation-id'))).toMatchObject({
    state: 'settled',
    provider: proxy.id,
    cost_micro_usdc: 400_000,
  });
  const { path, headers, body: sent } = provider.requests.at(-1)!;
  expect(path).toBe('/v1/images/generations');
  expect(headers.authorization).toBe('Bearer image-secret-canary');
  expect(sent).toMatchObject({ model: 'upstream-paint', n: 2, size: '1536x1024', quality: 'high', seed: 3 });
});
