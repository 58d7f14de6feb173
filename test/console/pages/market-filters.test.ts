import { expect, test } from 'vitest';
import type { Service } from '../../../web/src/api/service.ts';
import { DEFAULTS, filter, index } from '../../../web/src/pages/marketplace/filters.ts';
import { formatTokens } from '../../../web/src/ui/number.ts';

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
  stops: true,
  stops_whole: true,
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
  const calls = (known: ReadonlyMap<string, number> | undefined) =>
    index(services, known).map(({ name, calls: count }) => [name, count]);
  expect(calls(new Map([['image/a/seeds', 7]]))).toEqual([
    ['a/seeds', 7],
    ['a/plain', null],
    ['a/thinks', null],
  ]);
  expect(calls(undefined).map(([, count]) => count)).toEqual([null, null, null]);
});

test('the most used service is first, and what cannot be called is last, however much it was used', () => {
  const rows = [
    service('a/idle', {}),
    service('b/dead', { status: 'down', requests: 90 }),
    service('c/lately', { requests: 5 }),
    service('d/used', { requests: 1 }),
    service('e/away', { status: 'away' }),
  ];
  const used = new Map([
    ['model/b/dead', 1_000],
    ['model/d/used', 40],
  ]);
  expect(index(rows, used).map(({ name }) => name)).toEqual(['d/used', 'c/lately', 'a/idle', 'b/dead', 'e/away']);
});

test('tokens are counted in thousands, as providers state them', () => {
  expect(
    [512, 4_096, 8_192, 32_768, 128_000, 131_072, 200_000, 1_000_000, 1_048_576, 2_000_000].map(formatTokens),
  ).toEqual(['512', '4.1K', '8.2K', '33K', '128K', '131K', '200K', '1M', '1M', '2M']);
});
