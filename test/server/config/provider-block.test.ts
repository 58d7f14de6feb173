import { expect, it } from 'vitest';
import { KNOWN_PROVIDER_NAMES, KNOWN_PROVIDERS } from '../../../src/server/config/known-providers.ts';
import { secretsOf } from '../../../src/server/config/option-values.ts';
import type { LoadOptions } from '../../../src/server/config/file.ts';
import { load, modelBlock, problemsOf } from './load.ts';

const OPENAI = '[[providers]]\nuse = "openai"\n';
const KEY = { OPENAI_API_KEY: 'sk-canary' };

const providersOf = (text: string, env: LoadOptions['env'] = KEY) => load(text, { env }).providers;
const told = (text: string, env: LoadOptions['env'] = KEY) =>
  problemsOf(text, { env }).map(({ line, key, wrong, right }) => `${line} ${key} ${wrong} → ${right}`);

it('two lines are enough', () => {
  expect(providersOf(OPENAI)).toEqual([
    {
      path: 'providers[0]',
      use: 'openai',
      prefix: 'openai',
      providerName: null,
      url: 'https://api.openai.com/v1',
      apiKey: 'sk-canary',
      keyVariable: 'OPENAI_API_KEY',
      markupBps: 0,
      only: [],
      except: [],
      pricing: null,
      models: {},
      sdkSettings: {},
    },
  ]);
});

it('every known provider can be named, with its usual variable', () => {
  for (const use of KNOWN_PROVIDER_NAMES) {
    const { base, keyVariables, lists, sdk } = KNOWN_PROVIDERS[use];
    const more = [
      ...(base === null && sdk === undefined ? ['api_base = "https://acme.example/openai/v1"'] : []),
      ...(lists === null ? ['only = ["a-model"]'] : []),
    ];
    const env = Object.fromEntries(keyVariables.slice(0, 1).map((name) => [name, `key-of-${use}`]));
    const [provider] = providersOf(`[[providers]]\nuse = "${use}"\n${more.join('\n')}`, env);
    expect(provider, use).toMatchObject({ use, apiKey: keyVariables.length === 0 ? null : `key-of-${use}` });
  }
});

it('has the address of the usual variable, and that of the file before it', () => {
  const env = { ...KEY, OPENAI_BASE_URL: 'http://127.0.0.1:9/' };
  expect(providersOf(OPENAI, env)[0]!.url).toBe('http://127.0.0.1:9/v1');
  expect(providersOf(`${OPENAI}api_base = "https://eu.api.openai.com/v1/"`, env)[0]!.url).toBe(
    'https://eu.api.openai.com/v1',
  );
  expect(told(OPENAI, { ...KEY, OPENAI_BASE_URL: 'nowhere' })).toEqual([
    expect.stringMatching(/^\d providers\[0\]\.api_base from the variable OPENAI_BASE_URL is "nowhere"/),
  ]);
});

it('the second variable of a provider counts if the first is not set', () => {
  expect(providersOf('[[providers]]\nuse = "google"', { GOOGLE_API_KEY: 'b' })[0]!.keyVariable).toBe('GOOGLE_API_KEY');
  expect(providersOf('[[providers]]\nuse = "google"', { GOOGLE_API_KEY: 'b', GEMINI_API_KEY: 'a' })[0]!.apiKey).toBe(
    'a',
  );
});

it('its key is a secret of the configuration, and is in no file', () => {
  expect(secretsOf(load(OPENAI, { env: KEY }))).toContain('sk-canary');
  expect(told(`${OPENAI}api_key = "sk-written-in-the-file"`)).toEqual([
    '3 providers[0].api_key is written in the file → "std::env::NAME", such as "std::env::OPENAI_API_KEY"',
  ]);
  expect(providersOf(`${OPENAI}api_key = "std::env::OTHER"`, { OTHER: 'sk-other' })[0]).toMatchObject({
    apiKey: 'sk-other',
    keyVariable: 'OTHER',
  });
});

it.each([
  ['"0%"', 0],
  ['"10%"', 1_000],
  ['"2.5%"', 250],
  ['"0.05%"', 5],
  ['"1000%"', 100_000],
])('the markup %s is %i hundredths of a percent', (text, bps) => {
  expect(providersOf(`${OPENAI}markup = ${text}`)[0]!.markupBps).toBe(bps);
});

it.each(['"-1%"', '"10"', '10', '0.1', '"10 %"', '"1.234%"', '"1000.01%"', '"1e2%"', '""', '"%"', '" 5%"'])(
  'the markup %s is refused',
  (text) => {
    expect(told(`${OPENAI}markup = ${text}`)).toEqual([
      expect.stringMatching(/^3 providers\[0\]\.markup is .+ → a percentage from "0%" to "1000%"/),
    ]);
  },
);

it.each<[string, string, string, object]>([
  [
    'without a key',
    OPENAI,
    'api_key is missing, and the environment has no OPENAI_API_KEY → set OPENAI_API_KEY, or name',
    {},
  ],
  ['an unknown provider', '[[providers]]\nuse = "openia"', 'use is "openia" → one of openai, anthropic', KEY],
  ['without a provider', '[[providers]]\nmarkup = "1%"', 'use is missing', KEY],
  ['an unknown key', `${OPENAI}marcup = "1%"`, 'marcup is not an option → did you mean "markup"?', KEY],
  [
    'the key of a gateway',
    OPENAI,
    'api_key is the key of a tollgate gateway, from OPENAI_API_KEY',
    { OPENAI_API_KEY: 'svc-sk-x' },
  ],
  [
    'a key that no header carries',
    OPENAI,
    'api_key from the variable OPENAI_API_KEY contains characters',
    { OPENAI_API_KEY: 'a\nb' },
  ],
  ['a wrong address', `${OPENAI}api_base = "ftp://x"`, 'api_base is "ftp://x"', KEY],
  [
    'Azure without its address',
    '[[providers]]\nuse = "azure"\nonly = ["a"]',
    'api_base is missing → the address of your Azure',
    { AZURE_API_KEY: 'k' },
  ],
  [
    'Bedrock without its models',
    '[[providers]]\nuse = "bedrock"',
    'only is missing: Bedrock does not tell',
    { AWS_BEARER_TOKEN_BEDROCK: 'k' },
  ],
  [
    'patterns for Bedrock',
    '[[providers]]\nuse = "bedrock"\nonly = ["*"]',
    'only has a *, but Bedrock',
    { AWS_BEARER_TOKEN_BEDROCK: 'k' },
  ],
  [
    'settings of a package that there is not',
    `${OPENAI}sdk_settings = { region = "x" }`,
    'sdk_settings is given, but OpenAI',
    KEY,
  ],
  [
    'a setting that a model does not have',
    `${OPENAI}[providers.models."gpt-5"]\ncontext_lenght = 5`,
    'models.gpt-5.context_lenght is not an option → did you mean',
    KEY,
  ],
  [
    'an address of a single model',
    `${OPENAI}[providers.models.a.params]\napi_base = "http://x/v1"`,
    'models.a.params.api_base is not an option',
    KEY,
  ],
  [
    'half a price',
    `${OPENAI}[providers.models.a]\npricing = { prompt = 1 }`,
    'models.a.pricing.completion is missing',
    KEY,
  ],
  ['half a price of all', `${OPENAI}pricing = { prompt = 1 }`, 'pricing.completion is missing', KEY],
  [
    'settings that contradict each other',
    `${OPENAI}[providers.models.a]\ncontext_length = 5\nmax_output_tokens = 9`,
    'models.a.max_output_tokens is more than context_length',
    KEY,
  ],
  ['a list price of no model', `${OPENAI}[providers.models.a]\npriced_as = 5`, 'models.a.priced_as is 5', KEY],
  [
    'the same names twice',
    `${OPENAI}${OPENAI}`,
    'use has the names of providers[0]: openai/… of the provider openai',
    KEY,
  ],
  ['no list', 'providers = "openai"', 'providers is "openai" → a list of blocks', KEY],
])('%s is refused in words', (_, text, words, env) => {
  expect(told(text, env as LoadOptions['env']).join('\n')).toContain(words);
});

it('several blocks of one provider differ in their names, or compete as different providers', () => {
  expect(providersOf(`${OPENAI}${OPENAI}prefix = "eu"`).map(({ prefix }) => prefix)).toEqual(['openai', 'eu']);
  expect(providersOf(`${OPENAI}${OPENAI}provider_name = "Second"`)).toHaveLength(2);
});

const offered = (name: string, more: object = {}) => ({
  path: 'providers[0].models.small',
  block: {
    name,
    pricing: { prompt: '1', completion: '2' },
    params: { model: 'small', api_base: 'https://api.openai.com/v1', api_key: 'std::env::OPENAI_API_KEY' },
    ...more,
  },
});

it('an offered model is a service with the key of the environment', () => {
  const { services } = load(OPENAI, { env: KEY, offered: [offered('openai/small')] });
  expect(services).toMatchObject([
    {
      service: { name: 'openai/small', providerName: 'openai', rates: { prompt: 1_000_000n, completion: 2_000_000n } },
      target: { kind: 'http', url: 'https://api.openai.com/v1', apiKey: 'sk-canary' },
      listed: true,
    },
  ]);
});

it('a block of the file replaces the offered model of its name and provider', () => {
  const own = (provider: string) =>
    `${OPENAI}${modelBlock({ name: '"openai/small"', provider_name: `"${provider}"`, display_name: null })}`;
  const read = (text: string) =>
    load(text, { env: KEY, offered: [offered('openai/small')] }).services.map(({ service, listed }) => [
      service.providerName,
      listed ?? false,
    ]);
  expect(read(own('OpenAI'))).toEqual([['OpenAI', false]]);
  // Another provider of the same name competes with it.
  expect(read(own('Acme'))).toEqual([
    ['Acme', false],
    ['openai', true],
  ]);
});

it('a problem of an offered model names its place in the file', () => {
  const text = `${OPENAI}[providers.models.small]\ninput_modalities = ["text"]\n`;
  const [problem] = problemsOf(text, { env: KEY, offered: [offered('openai/small', { context_length: -1 })] });
  expect(problem).toMatchObject({ key: 'providers[0].models.small.context_length', line: 3 });
});

it('a command that only looks for the gateway needs no key', () => {
  expect(load(OPENAI, { placeOnly: true }).providers).toMatchObject([{ use: 'openai', apiKey: null }]);
});
