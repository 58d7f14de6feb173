import { expect, test } from 'vitest';
import type { Primitive } from '../../../../src/server/config/names.ts';
import { viewPrice } from '../../../../src/server/catalog/price-view.ts';
import { offer, variants } from './market-world.ts';

const of = (primitive: Primitive, pricing: Record<string, number>) => offer({ provider: 'p', primitive, pricing });

test('models cost USD per 1M tokens, and per input image where that is charged', () => {
  expect(viewPrice(of('model', { prompt: 0.15, completion: 0.6, image: 0.001 }))).toEqual({
    prompt: 0.15,
    completion: 0.6,
    image: 0.001,
  });
  expect(viewPrice(of('model', {}))).toEqual({ prompt: 0, completion: 0, image: null });
});

test('tools cost USD per call, those with a price of their own that', () => {
  const tool = of('tool', { call: 0.000001 });
  expect(viewPrice({ ...tool, variants: variants(tool, 'call', { search: 0.5, ping: 0 }) })).toEqual({
    per_call: 0.000001,
    tools: { search: 0.5, ping: 0 },
  });
});

test('agents cost USD per call, per 1M tokens, or both', () => {
  expect(viewPrice(of('agent', { call: 0.02, completion: 3 }))).toEqual({
    per_call: 0.02,
    per_task: null,
    prompt: null,
    completion: 3,
  });
});

test('images cost USD each, by resolution tier where the provider says so', () => {
  const image = of('image', { image: 0.04 });
  expect(viewPrice(image)).toEqual({ generation: 0.04 });
  expect(viewPrice({ ...image, variants: variants(image, 'image', { '2K': 0.08, '4K': 0.16 }) })).toEqual({
    generation: 0.04,
    resolutions: { '2K': 0.08, '4K': 0.16 },
  });
});

test('videos cost USD per second by resolution, on top of a base, times the multiplier where there is sound', () => {
  const video = of('video', { second: 0.375, call: 0.02 });
  const prices = { '480p': 0.1, '480p+audio': 0.125, '1080p': 0.3, '1080p+audio': 0.375 };
  expect(viewPrice({ ...video, variants: variants(video, 'second', prices) })).toEqual({
    per_second: { '480p': 0.1, '1080p': 0.3 },
    base: 0.02,
    audio_multiplier: 1.25,
  });
  // A free resolution does not tell the multiplier.
  expect(
    viewPrice({
      ...video,
      variants: variants(video, 'second', { '480p': 0, '480p+audio': 0, '720p': 0.1, '720p+audio': 0.2 }),
    }),
  ).toMatchObject({
    per_second: { '480p': 0, '720p': 0.1 },
    audio_multiplier: 2,
  });
  expect(viewPrice({ ...of('video', { second: 0.1 }), variants: variants(video, 'second', { '480p': 0.1 }) })).toEqual({
    per_second: { '480p': 0.1 },
    base: 0,
    audio_multiplier: 1,
  });
});
