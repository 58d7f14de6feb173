import { describe, expect, test } from 'vitest';
import { readRegistration, toRegistrationDocument } from '../../../src/gateway/network/registry/document.ts';
import { block, load, problemsOf } from './load.ts';

const serviceOf = (changes: Readonly<Record<string, string>>) => load(block('images', changes)).services[0]!.service;

describe('the prices of edits', () => {
  const priced = (changes: Readonly<Record<string, string>>) =>
    serviceOf({ 'params.edits': 'true', ...changes }).variants;
  const [image, half] = [30_000_000_000n, 500_000_000_000n];

  test('are those of images, until they have some of their own', () => {
    expect(priced({ 'pricing.resolutions.2K': '0.5' })).toEqual({ '2K': { image: half } });
    expect(priced({ 'pricing.resolutions.2K': '0.5', 'pricing.input_image': '0.000001' })).toEqual({
      '2K': { image: half },
      edit: { image, input_image: 1_000_000n },
      'edit/2K': { image: half, input_image: 1_000_000n },
    });
    expect(priced({ 'pricing.resolutions.2K': '1', 'pricing.edit': '0.5' })).toEqual({
      '2K': { image: 2n * half },
      edit: { image: half },
    });
    expect(priced({ 'pricing.variants': '{ "edit/2K/high" = 0.5 }' })).toEqual({
      edit: { image },
      'edit/2K/high': { image: half },
    });
  });

  test('read the same in a registration', async () => {
    for (const changes of [
      { 'pricing.edit': '0.5', 'pricing.input_image': '0.01', 'pricing.resolutions.2K': '1', 'params.body': '"json"' },
      { 'pricing.variants': '{ "2K/high" = 0.2, "edit/2K" = 0.1 }', 'pricing.input_image': '0.01' },
    ]) {
      const [offered] = load(block('images', { 'params.edits': 'true', ...changes })).services;
      const document = JSON.stringify(toRegistrationDocument([offered!]));
      expect(await readRegistration(document, { servicesMax: 1 })).toEqual([offered!.service]);
    }
  });

  test('need a service that edits', () => {
    for (const key of ['pricing.edit', 'pricing.input_image'])
      expect(problemsOf(block('images', { [key]: '1' }))).toMatchObject([{ key: `images[0].${key}` }]);
    expect(problemsOf(block('images', { 'pricing.variants': '{ "edit/1K" = 1 }' }))).toMatchObject([
      { key: 'images[0].pricing.variants', right: 'params.edits = true' },
    ]);
  });
});

describe('the tiers of an image service', () => {
  test('have prices of their own', () => {
    expect(serviceOf({ 'pricing.resolutions.2K': '0.06', 'pricing.resolutions.4K': '"0.12"' })).toMatchObject({
      rates: { image: 30_000_000_000n },
      variants: { '2K': { image: 60_000_000_000n }, '4K': { image: 120_000_000_000n } },
      media: { resolutions: ['2K', '4K'] },
    });
  });

  test('may include some without', () => {
    const service = serviceOf({ resolutions: '["1K", "2K"]', 'pricing.resolutions.2K': '0.06' });
    expect(Object.keys(service.variants)).toEqual(['2K']);
    expect(service).toMatchObject({ media: { resolutions: ['1K', '2K'] } });
  });

  test('are listed where any are', () => {
    expect(problemsOf(block('images', { resolutions: '["1K"]', 'pricing.resolutions.2K': '0.06' }))).toMatchObject([
      { key: 'images[0].pricing.resolutions.2K', wrong: 'is not in resolutions' },
    ]);
  });
});
