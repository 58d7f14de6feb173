import { confinesPackages } from '../../../scripts/test-tiers.ts';
import { expect, it } from 'vitest';
import type { KnownProviderName } from '#config/known-providers';
import type { LastLists } from '../../../src/providers/list-prices/offer-models.ts';
import { findFreePort } from '../../support/free-port.ts';
import { block, listing, offer, startProvider } from './offering.ts';

it.each([
  ['', true],
  ['[providers.models]\n"gpt-4.1-mini" = { zdr = true }\n', undefined],
])('takes batches at the address of OpenAI, unless nothing may be kept: %j', async (more, takes) => {
  const text = `[[providers]]\nuse = "openai"\nonly = ["gpt-4.1-mini"]\n${more}`;
  const { variants, target } = (await offer(text, { ask: false })).service('openai/gpt-4.1-mini');
  expect(target).toMatchObject(takes ? { batches: true } : {});
  expect(['batch' in variants, 'batches' in target]).toEqual([takes === true, takes === true]);
});

it('offers what the provider lists and the list of prices has, and says why it offers nothing else', async () => {
  const { url, asked } = await listing([
    'gpt-4.1-mini',
    'text-embedding-3-small',
    'gpt-99-ultra',
    'tts-1',
    'gpt-realtime',
    'gpt-image-1',
    'gpt-4o-audio-preview',
    'gpt-4o-search-preview',
    'davinci-002',
    'a name with spaces',
  ]);
  const { names, why, from, service } = await offer(block('openai', url, 'markup = "10%"'));
  expect(asked).toEqual([{ what: 'GET /v1/models', keys: { authorization: 'Bearer sk-openai' } }]);
  expect(from).toBe('provider');
  expect(names).toEqual(['openai/gpt-4.1-mini', 'openai/text-embedding-3-small']);
  expect(why).toEqual({
    'openai/gpt-99-ultra': 'the list of prices does not have it',
    'openai/tts-1': 'the list of prices does not have it',
    'openai/gpt-realtime': expect.stringContaining('realtime'),
    'openai/gpt-image-1': expect.stringContaining('[[images]]'),
    'openai/gpt-4o-audio-preview': expect.stringContaining('sound'),
    'openai/gpt-4o-search-preview': expect.stringContaining('searches the web'),
    'openai/davinci-002': 'it is not for chat',
    'openai/a name with spaces': expect.stringContaining('characters'),
  });
  const { rates, model, target, displayName } = service('openai/gpt-4.1-mini');
  expect(displayName).toBe('OpenAI: gpt-4.1-mini');
  // 0.4, 1.6 and 0.1 USD for 1M tokens, and 10 USD for a thousand searches, each with 10 %.
  expect(rates).toEqual({
    prompt: 440_000n,
    completion: 1_760_000n,
    input_cache_read: 110_000n,
    web_search: 11_000_000_000n,
  });
  expect(model).toMatchObject({
    upstreamModel: 'gpt-4.1-mini',
    contextLength: 1_000_000,
    maxOutputTokens: 32_768,
    inputModalities: ['text', 'image', 'file'],
    wires: ['responses'],
    cap: 'max_completion_tokens',
    // Nothing that a consumer adds to a request reaches the provider unless it is known to cost no more.
    forward: [],
    // OpenAI refuses top_k and all other fields that its API does not have.
    strictFields: true,
  });
  // The cost is the list price without the markup.
  const cost = { prompt: 400_000n, completion: 1_600_000n, input_cache_read: 100_000n, web_search: 10_000_000_000n };
  expect(target).toEqual({ kind: 'http', url, apiKey: 'sk-openai', cost: { rates: cost, serviceTiers: {} } });
  expect(service('openai/text-embedding-3-small')).toMatchObject({
    rates: { prompt: 22_000n, completion: 0n },
    model: { outputModalities: ['embeddings'] },
  });
});

it('offers speech and transcriptions at the prices of the list, where the provider has the API for them', async () => {
  const names = ['gpt-4o-mini-tts', 'gpt-4o-transcribe', 'whisper-1'];
  const { url } = await listing(names);
  const { service } = await offer(block('openai', url, 'markup = "10%"'));
  expect(service('openai/gpt-4o-mini-tts')).toMatchObject({
    rates: { prompt: 660_000n, completion: 13_200_000n },
    model: { outputModalities: ['speech'], maxOutputTokens: 16_000 },
  });
  expect(service('openai/gpt-4o-transcribe')).toMatchObject({
    rates: { prompt: 2_750_000n, audio: 6_600_000n, completion: 11_000_000n },
    model: { inputModalities: ['audio'], outputModalities: ['transcription'], maxOutputTokens: 2_000 },
  });
  // 0.36 USD an hour, which is 0.006 a minute and 0.0001 a second, as a rate of a million seconds.
  expect(service('openai/whisper-1')).toMatchObject({
    rates: { prompt: 0n, completion: 0n, second: 110_000_000n },
    model: { outputModalities: ['transcription'] },
  });
  // Of others nobody knows whether they have it.
  const other = await offer(block('azure', url, 'only = ["whisper-1"]'));
  expect([other.names, other.why]).toEqual([[], { 'azure/whisper-1': expect.stringContaining('output_modalities') }]);
});

it('offers no names of the list of prices that no provider has', async () => {
  const { names } = await offer('[[providers]]\nuse = "openai"\n', { ask: false });
  expect(names).toContain('openai/gpt-4o-mini-tts');
  expect(names.filter((name) => /\/ft:|-$|:extended/.test(name))).toEqual([]);
  const routed = await offer('[[providers]]\nuse = "openrouter"\n', { ask: false });
  expect(routed.names).toContain('openrouter/openai/gpt-oss-20b');
  expect(routed.names.filter((name) => name.split('/').length < 3)).toEqual([]);
});

it("only, except and prefix choose names; a pattern fits the provider's own names", async () => {
  const { url } = await listing(['gpt-5', 'gpt-5-mini', 'gpt-5-nano', 'gpt-4.1', 'o3']);
  const only = 'only = ["gpt-5*", "o3", "gpt-6"]\nexcept = ["*-nano"]\nprefix = "acme"';
  const { names, why } = await offer(block('openai', url, only));
  expect(names).toEqual(['acme/gpt-5', 'acme/gpt-5-mini', 'acme/o3']);
  expect(why).toEqual({ 'acme/gpt-6': 'OpenAI does not list it for this key' });
});

it('settings of single models: any of [[models]], a price of the file, or that of another model', async () => {
  const { url } = await listing(['gpt-5', 'gpt-99', 'ft:gpt-5:acme', 'gpt-4.1']);
  const { names, service, offered, why } = await offer(
    block(
      'openai',
      url,
      `markup = "10%"
[providers.models.gpt-5]
description = "Ours"
context_length = 1000
params = { max_output_tokens = 100 }
[providers.models.gpt-99]
pricing = { prompt = 7, completion = 8, tiers = [{ above = 1000, prompt = 9 }] }
[providers.models."ft:gpt-5:acme"]
priced_as = "gpt-5"
name = "openai/tuned"
[providers.models."gpt-4.1"]
max_output_tokens = 50
`,
    ),
  );
  expect(names).toEqual(['openai/gpt-4.1', 'openai/gpt-5', 'openai/gpt-99', 'openai/tuned']);
  expect(why).toEqual({});
  expect(service('openai/gpt-5')).toMatchObject({
    description: 'Ours',
    rates: { prompt: 1_375_000n },
    model: { contextLength: 1000, maxOutputTokens: 100 },
  });
  // The operator's own price has no markup.
  expect(service('openai/gpt-99').rates).toMatchObject({ prompt: 7_000_000n, tiers: [{ above: 1000n }] });
  expect(service('openai/tuned')).toMatchObject({
    rates: { prompt: 1_375_000n },
    model: { upstreamModel: 'ft:gpt-5:acme' },
  });
  expect(service('openai/gpt-4.1').model.maxOutputTokens).toBe(50);
  expect(offered.map(({ source }) => (source.kind === 'file' ? 'file' : source.pricedAs))).toEqual([
    'gpt-4.1',
    'gpt-5',
    'file',
    'gpt-5',
  ]);
});

it('Anthropic is asked as its own API wants it, and what it says of a model counts', async () => {
  const { url, asked } = await listing([
    {
      id: 'claude-haiku-4-5-20251001',
      type: 'model',
      max_input_tokens: 190_000,
      max_tokens: 60_000,
      lifecycle: 'active',
      capabilities: { image_input: { supported: true }, pdf_input: { supported: false } },
    },
    { id: 'claude-3-opus-20240229', lifecycle: 'retired' },
  ]);
  const { service, why } = await offer(block('anthropic', url));
  expect(asked).toEqual([
    { what: 'GET /v1/models?limit=1000', keys: { 'x-api-key': 'sk-ant-1', 'anthropic-version': '2023-06-01' } },
  ]);
  expect(why).toEqual({ 'anthropic/claude-3-opus-20240229': 'its provider no longer serves it' });
  expect(service('anthropic/claude-haiku-4-5-20251001')).toMatchObject({
    rates: {
      prompt: 1_000_000n,
      completion: 5_000_000n,
      input_cache_read: 100_000n,
      input_cache_write: 1_250_000n,
      input_cache_write_1h: 2_000_000n,
      web_search: 10_000_000_000n,
    },
    model: {
      contextLength: 190_000,
      maxOutputTokens: 60_000,
      inputModalities: ['text', 'image'],
      wires: ['messages'],
    },
  });
});

it('Google is asked at its own API, beside that for chat', async () => {
  const provider = await startProvider();
  const { asked } = provider;
  const origin = new URL(provider.url).origin;
  provider.list({
    json: {
      models: [
        {
          name: 'models/gemini-2.5-flash',
          inputTokenLimit: 1_048_576,
          outputTokenLimit: 65_536,
          supportedGenerationMethods: ['generateContent', 'countTokens'],
        },
        { name: 'models/aqa', supportedGenerationMethods: ['generateAnswer'] },
      ],
    },
  });
  const { service, why } = await offer(block('google', `${origin}/v1beta/openai`));
  expect(asked).toEqual([{ what: 'GET /v1beta/models?pageSize=1000', keys: { 'x-goog-api-key': 'AIza-1' } }]);
  expect(Object.keys(why)).toEqual(['google/aqa']);
  expect(service('google/gemini-2.5-flash')).toMatchObject({
    // Sound costs more than text, and searches what Google asks at most: 35 USD for a thousand.
    rates: { prompt: 300_000n, audio: 1_000_000n, input_audio_cache: 100_000n, web_search: 35_000_000_000n },
    model: {
      upstreamModel: 'gemini-2.5-flash',
      contextLength: 1_048_576,
      maxOutputTokens: 65_536,
      inputModalities: ['text', 'image', 'audio', 'video', 'file'],
      wires: ['gemini'],
    },
    target: { url: `${origin}/v1beta/openai` },
  });
});

it('a provider that names a higher price than the list is sold at its own', async () => {
  const { url } = await listing([
    {
      id: 'openai/gpt-4.1-mini',
      context_length: 1_047_576,
      top_provider: { max_completion_tokens: 32_000 },
      architecture: { input_modalities: ['image', 'text', 'file', 'smell'] },
      pricing: { prompt: '0.0000005', completion: '0.0000001', input_cache_read: '0.0000001' },
    },
    { id: 'openai/gpt-4.1', pricing: { prompt: '0', completion: '0', request: '0.01' } },
  ]);
  const { service, why, offered } = await offer(block('openrouter', url, 'markup = "100%"'));
  const { rates, model } = service('openrouter/openai/gpt-4.1-mini');
  // 0.5 USD of the provider instead of 0.4 for prompts; 1.6 of the list instead of 0.1 for completions; twice.
  expect(rates).toMatchObject({ prompt: 1_000_000n, completion: 3_200_000n, input_cache_read: 200_000n });
  expect(model).toMatchObject({
    contextLength: 1_047_576,
    maxOutputTokens: 32_000,
    inputModalities: ['image', 'text', 'file'],
    forward: ['reasoning'],
  });
  expect(offered[0]!.source).toMatchObject({ isRaised: true });
  expect(why['openrouter/openai/gpt-4.1']).toContain('each request');
});

it.each<[string, readonly object[], string, readonly string[]]>([
  [
    'mistral',
    [{ id: 'mistral-large-2512', max_context_length: 9_000, capabilities: { vision: true, completion_chat: true } }],
    'mistral-large-2512',
    ['text', 'image'],
  ],
  [
    'groq',
    [{ id: 'openai/gpt-oss-120b', context_window: 9_000, max_completion_tokens: 4_000, active: true }],
    'openai/gpt-oss-120b',
    ['text'],
  ],
  [
    'together',
    [
      {
        id: 'meta-llama/Llama-3.3-70B-Instruct-Turbo',
        type: 'chat',
        context_length: 9_000,
        pricing: { input: 0.88, output: 0.88 },
      },
    ],
    'meta-llama/Llama-3.3-70B-Instruct-Turbo',
    ['text'],
  ],
])('%s says what it knows of a model', async (use, items, name, kinds) => {
  const { url } = await listing(items);
  const { service } = await offer(block(use, url));
  expect(service(`${use}/${name}`).model).toMatchObject({ contextLength: 9_000, inputModalities: kinds });
});

it.each<[KnownProviderName, string, boolean, readonly string[]]>([
  ['google', 'gemini-2.5-flash', true, []],
  ['groq', 'openai/gpt-oss-120b', true, ['reasoning_format']],
  ['mistral', 'mistral-large-2512', true, ['random_seed', 'safe_prompt']],
  ['deepseek', 'deepseek-chat', true, ['thinking']],
  ['openrouter', 'openai/gpt-4.1-mini', false, ['reasoning']],
  ['together', 'meta-llama/Llama-3.3-70B-Instruct-Turbo', false, []],
])('%s gets the extensions of the chat API that it takes', async (use, name, strict, forward) => {
  const { service } = await offer(`[[providers]]\nuse = "${use}"\nonly = ["${name}"]\n`, { ask: false });
  const { model } = service(`${use}/${name}`);
  expect([model.strictFields ?? false, model.forward]).toEqual([strict, forward]);
});

it('models of the own machine need a price', async () => {
  const { url } = await listing(['llama3.2:latest', 'nomic-embed-text:latest']);
  const plain = await offer(block('ollama', url));
  expect(plain.names).toEqual([]);
  expect(plain.why['ollama/llama3.2:latest']).toBe(
    'Ollama has no list prices: give its models one, such as pricing = { prompt = 0, completion = 0 }',
  );
  const free = await offer(block('ollama', url, 'pricing = { prompt = 0, completion = 0 }'));
  expect(free.names).toEqual(['ollama/llama3.2:latest', 'ollama/nomic-embed-text:latest']);
  expect(free.service('ollama/llama3.2:latest').target).toEqual({ kind: 'http', url, apiKey: null });
  expect(free.service('ollama/nomic-embed-text:latest').model.outputModalities).toEqual(['embeddings']);
});

it('pricing of a provider is for models without a list price alone', async () => {
  const { url } = await listing(['gpt-4.1-mini', 'gpt-99']);
  const { service } = await offer(block('openai', url, 'pricing = { prompt = 50, completion = 60 }'));
  expect(service('openai/gpt-4.1-mini').rates).toMatchObject({ prompt: 400_000n });
  expect(service('openai/gpt-99').rates).toEqual({ prompt: 50_000_000n, completion: 60_000_000n });
});

it('Azure, which lists nothing, offers the models of `only`', async () => {
  const azure = await offer(
    `${block('azure', 'https://acme.openai.azure.com/openai/v1', 'only = ["gpt-4.1-mini", "prod"]')}
[providers.models.prod]
priced_as = "gpt-5"`,
  );
  expect(azure.from).toBe('file');
  expect(azure.service('azure/prod')).toMatchObject({
    rates: { prompt: 1_250_000n },
    model: { upstreamModel: 'prod' },
    target: { url: 'https://acme.openai.azure.com/openai/v1', apiKey: 'az' },
  });
});

it('Bedrock, which lists nothing, offers the models of `only`, where Node can confine its package', async () => {
  const offered = offer(`[[providers]]
use = "bedrock"
only = ["eu.anthropic.claude-haiku-4-5-20251001-v1:0"]
sdk_settings = { region = "eu-central-1" }`);
  if (!confinesPackages())
    return expect(offered).rejects.toThrow('names the package @ai-sdk/amazon-bedrock, which needs Node 25 or newer');
  const bedrock = await offered;
  expect(bedrock.service('bedrock/eu.anthropic.claude-haiku-4-5-20251001-v1:0')).toMatchObject({
    // A tenth more than the global price.
    rates: { prompt: 1_100_000n, completion: 5_500_000n },
    target: {
      kind: 'sdk',
      sdk: '@ai-sdk/amazon-bedrock',
      settings: { region: 'eu-central-1' },
      secrets: { apiKey: 'aws' },
    },
  });
});

it('a provider that does not answer: the models of the list of prices, or those that it listed before', async () => {
  const url = `http://127.0.0.1:${await findFreePort()}/v1`;
  const first = await offer(block('deepseek', url));
  expect(first).toMatchObject({ from: 'prices', problem: expect.stringMatching(/could not be asked .* ECONNREFUSED/) });
  expect(first.names).toContain('deepseek/deepseek-v4-pro');

  const last: LastLists = new Map();
  const answers = await listing(['deepseek-v4-flash']);
  const text = block('deepseek', answers.url);
  expect((await offer(text, { last })).names).toEqual(['deepseek/deepseek-v4-flash']);
  answers.list({ status: 500, json: {} });
  expect(await offer(text, { last })).toMatchObject({
    from: 'provider',
    problem: expect.stringContaining('answered 500'),
    names: ['deepseek/deepseek-v4-flash'],
  });
  answers.list({ json: 'hello' });
  expect((await offer(text, { last })).problem).toContain('did not answer with a list of models');
});

it('a key that is not accepted: nothing is offered at a start, and what was offered stays', async () => {
  const last: LastLists = new Map();
  const { url, list } = await listing(['gpt-5']);
  expect((await offer(block('openai', url), { last })).names).toEqual(['openai/gpt-5']);
  list({ status: 401, json: {} });
  expect((await offer(block('openai', url), { last })).names).toEqual(['openai/gpt-5']);
  const fresh = await offer(block('openai', url));
  expect(fresh).toMatchObject({ from: 'none', names: [], problem: expect.stringContaining('does not accept the key') });
  expect(fresh.problem).not.toContain('sk-openai');
});

it('asks nobody if it must not', async () => {
  const { url, asked } = await listing(['gpt-5']);
  const { from, names } = await offer(block('openai', url, 'only = ["gpt-5", "gpt-4.1"]'), { ask: false });
  expect([from, names, asked]).toEqual(['prices', ['openai/gpt-4.1', 'openai/gpt-5'], []]);
});
