import { expect, test } from 'vitest';
import type { Service } from '../../web/src/api/service.ts';
import { DEFAULTS, filter, index } from '../../web/src/pages/marketplace/filters.ts';

const service = (name: string, more: Partial<Service>): Service => ({
  primitive: 'model',
  name,
  display_name: name,
  description: '',
  status: 'healthy',
  uptime: null,
  requests: 0,
  listed_since: '2026-11-21T00:00:00.000Z',
  input_modalities: ['text'],
  output_modalities: ['text'],
  context_length: null,
  max_output_tokens: null,
  resolutions: [],
  durations: [],
  aspect_ratios: [],
  formats: [],
  supported_parameters: [],
  pricing: {},
  typical_usd: 0,
  typical_seconds: null,
  providers: [],
  ...more,
});

const services = [
  service('a/plain', {}),
  service('a/seeds', { primitive: 'image', supported_parameters: ['seed', 'negative_prompt'] }),
  service('a/thinks', { supported_parameters: ['chat_template_kwargs'] }),
];

test('a parameter leaves the services that take it', () => {
  const names = (param: string) => filter(index(services, undefined), { ...DEFAULTS, param }).map((each) => each.name);
  expect(names('seed')).toEqual(['a/seeds']);
  expect(names('chat_template_kwargs')).toEqual(['a/thinks']);
  expect(names('')).toHaveLength(3);
});

test('rows have the calls of 30 days; services without figures have none', () => {
  const calls = (known: ReadonlyMap<string, number> | undefined) => index(services, known).map((row) => row.calls);
  expect(calls(new Map([['image/a/seeds', 7]]))).toEqual([null, 7, null]);
  expect(calls(undefined)).toEqual([null, null, null]);
});
