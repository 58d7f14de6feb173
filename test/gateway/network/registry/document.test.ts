import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import type { ServiceConfig } from '../../../../src/server/config/service.ts';
import { readRegistration, toRegistrationDocument } from '../../../../src/gateway/network/registry/document.ts';
import { loadProviderText } from '../../../providers/proxy/load.ts';
import { block } from '../../../server/config/load.ts';

const LIMITS = { servicesMax: 100 };
const through = (services: readonly ServiceConfig[]) =>
  readRegistration(JSON.stringify(toRegistrationDocument(services)), LIMITS);
const loadBlocks = (text: string, env = {}) => loadProviderText(text, { env }).services;

const FULL = [
  block('models', {
    description: '"One.\\nTwo."',
    context_length: '1000',
    'params.max_output_tokens': '10',
    'params.cap': '"max_completion_tokens"',
    input_modalities: '["text", "image"]',
    'pricing.prompt': '0.001',
    'pricing.completion': '10_000',
    'pricing.image': '0.000001',
    'pricing.input_cache_read': '0.1',
    'pricing.input_cache_write': '1.25',
    'params.forward': '["top_n_sigma"]',
    'params.wires': '["messages", "responses"]',
    'params.image_tokens_max': '26000',
    'params.hidden_reasoning_max': '9',
    'params.hidden_reasoning_usual': '3',
  }),
  block('tools', { 'pricing.tools': '{ search = 0.000001, "a.b" = 0 }' }),
  block('agents', {
    agent_card_path: '"/card.json"',
    rpc_path: '"/a2a"',
    'pricing.per_call': null,
    'pricing.completion': '0.5',
    'pricing.per_call_max': '0.2',
    'pricing.nested_max': '0.1',
  }),
  block('images', {
    resolutions: '["1K", "2K"]',
    formats: '["png"]',
    supported_params: '["seed"]',
    aspect_ratios: '["1:1"]',
    'pricing.resolutions.2K': '0.06',
  }),
  block('videos', {
    durations: '["5s"]',
    'pricing.per_second.4k': '0.2',
    'pricing.base': '0.05',
    'pricing.audio_multiplier': '1.25',
  }),
].join('');

const ALL_OF_MEDIA = [
  block('images', {
    name: '"acme/edits"',
    quotes: 'false',
    'pricing.variants': '{ "2K/high" = 0.1 }',
    'pricing.edit': '0.2',
    'pricing.input_image': '0.01',
    'params.edits': 'true',
  }),
  block('videos', { name: '"acme/files"', quotes: 'false', 'params.inputs': '"files"' }),
].join('');

describe('a registration', () => {
  test.each([
    ['full blocks', FULL],
    [
      'blocks with no more than they must have',
      ['models', 'tools', 'agents', 'images', 'videos'].map((table) => block(table as 'models')).join(''),
    ],
    [
      'a free video with a multiplier',
      block('videos', { 'pricing.per_second.720p': '0', 'pricing.audio_multiplier': '2' }),
    ],
    [
      'a video of which one resolution is free',
      block('videos', { 'pricing.per_second.480p': '0', 'pricing.audio_multiplier': '2' }),
    ],
    [
      'a model that takes all fields',
      block('models', { 'params.forward': '"all"', 'params.hidden_reasoning_max': '0' }),
    ],
    ['several of a kind', block('tools') + block('tools', { name: '"acme/b"' })],
  ])('of %s says what the file said', async (_what, text) => {
    const services = loadBlocks(text);
    expect(await through(services)).toEqual(services.map(({ service }) => service));
  });

  test('of the example says what it said', async () => {
    const text = readFileSync(new URL('../../../../examples/provider.toml', import.meta.url), 'utf8');
    const services = loadBlocks(text, { ACME_API_KEY: 'a', SEARCH_TOKEN: 'b' });
    expect(await through(services)).toEqual(services.map(({ service }) => service));
  });

  test('has prices as exact decimal texts', () => {
    expect(toRegistrationDocument(loadBlocks(FULL))).toMatchObject({
      version: 1,
      models: [{ pricing: { prompt: '0.001', completion: '10000', image: '0.000001' } }],
      tools: [{ pricing: { per_call: '0.01', tools: { search: '0.000001', 'a.b': '0' } } }],
      agents: [{ pricing: { completion: '0.5', per_call_max: '0.2', nested_max: '0.1' } }],
      images: [{ pricing: { generation: '0.03', resolutions: { '2K': '0.06' } } }],
      videos: [{ pricing: { per_second: { '720p': '0.1', '4k': '0.2' }, base: '0.05', audio_multiplier: '1.25' } }],
    });
  });

  // The keys that JSON.stringify writes are in the order of these lines.
  test('has the bytes that it always had', () => {
    const names = { display_name: 'Small (Acme)', provider_name: 'Acme' };
    const blocks: readonly (readonly [string, string, object])[] = [
      [
        'models',
        'acme/small',
        {
          description: 'One.\nTwo.',
          context_length: 1000,
          input_modalities: ['text', 'image'],
          output_modalities: ['text'],
          pricing: {
            prompt: '0.001',
            completion: '10000',
            image: '0.000001',
            input_cache_read: '0.1',
            input_cache_write: '1.25',
          },
          params: {
            model: 'small',
            cap: 'max_completion_tokens',
            max_output_tokens: 10,
            wires: ['messages', 'responses'],
            forward: ['top_n_sigma'],
            image_tokens_max: 26000,
            hidden_reasoning_max: 9,
            hidden_reasoning_usual: 3,
          },
        },
      ],
      ['tools', 'acme/small', { pricing: { per_call: '0.01', tools: { search: '0.000001', 'a.b': '0' } } }],
      [
        'agents',
        'acme/small',
        {
          agent_card_path: '/card.json',
          rpc_path: '/a2a',
          pricing: { completion: '0.5', per_call_max: '0.2', nested_max: '0.1' },
        },
      ],
      [
        'images',
        'acme/small',
        {
          supported_params: ['seed'],
          aspect_ratios: ['1:1'],
          formats: ['png'],
          resolutions: ['1K', '2K'],
          pricing: { generation: '0.03', resolutions: { '2K': '0.06' } },
          params: { model: 'paint' },
        },
      ],
      [
        'images',
        'acme/edits',
        {
          supported_params: [],
          aspect_ratios: [],
          formats: [],
          resolutions: ['2K'],
          quotes: false,
          pricing: { generation: '0.03', variants: { '2K/high': '0.1' }, edit: '0.2', input_image: '0.01' },
          params: { model: 'paint', wire: 'openai', edits: true, body: 'multipart' },
        },
      ],
      [
        'videos',
        'acme/small',
        {
          supported_params: [],
          aspect_ratios: [],
          durations: ['5s'],
          pricing: { per_second: { '720p': '0.1', '4k': '0.2' }, base: '0.05', audio_multiplier: '1.25' },
          params: { model: 'film' },
        },
      ],
      [
        'videos',
        'acme/files',
        {
          supported_params: [],
          aspect_ratios: [],
          durations: [],
          quotes: false,
          pricing: { per_second: { '720p': '0.1' } },
          params: { model: 'film', inputs: 'files' },
        },
      ],
    ];
    const tables = Map.groupBy(blocks, ([table]) => table);
    const document = Object.fromEntries(
      [...tables].map(([table, of]) => [table, of.map(([, name, rest]) => ({ name, ...names, ...rest }))]),
    );
    expect(JSON.stringify(toRegistrationDocument(loadBlocks(FULL + ALL_OF_MEDIA)))).toBe(
      JSON.stringify({ version: 1, ...document }),
    );
  });

  test('has nothing of where a service runs', () => {
    const canary = 'canary7f3a';
    const api = { 'params.api_base': `"http://${canary}.example/v1"`, 'params.api_key': `"${canary}"` };
    const services = loadBlocks(
      [
        block('models', api),
        block('images', api),
        block('videos', api),
        block('agents', { endpoint: `"http://${canary}.example"`, api_key: '"std::env::LEAK"' }),
        block('tools', { endpoint: `"http://${canary}.example"`, api_key: `"${canary}"` }),
        block('tools', {
          name: '"b"',
          endpoint: null,
          command: `"${canary}"`,
          args: `["${canary}"]`,
          cwd: `"/${canary}"`,
          'env.A': `"${canary}"`,
        }),
      ].join(''),
      { LEAK: canary },
    );
    expect(services.every(({ target }) => JSON.stringify(target).includes(canary))).toBe(true);
    const text = JSON.stringify(toRegistrationDocument(services));
    expect(text).not.toContain(canary);
    expect(text).not.toMatch(/api_key|api_base|endpoint|command|args|cwd|env/);
  });
});
