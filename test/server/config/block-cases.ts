import type { Meter } from '#billing/amounts';
import type { BlockTable, Changes } from './load.ts';

/** An option of a block, as a file sets it. */
export interface Case {
  /** Where its value is in a `ServiceConfig`. */
  readonly at: string;
  readonly toml: string;
  readonly is: unknown;
  /** Its value if it is absent. */
  readonly fallback?: unknown;
  /** The block is refused without it. */
  readonly required?: true;
  /** What is refused besides that which its format says. */
  readonly wrong?: readonly string[];
  /** What else the block needs, or must not have, for it. */
  readonly with?: Changes;
  /** The option that a registration has instead, if two options mean the same. */
  readonly writtenAs?: string;
}

type Cases = Readonly<Record<string, Case>>;

const long = (count: number) => `"${'x'.repeat(count)}"`;
const listOf = (count: number, one: (n: number) => string) => Array.from({ length: count }, (_, n) => one(n)).join(',');
const one = (at: string, toml: string, is: unknown, wrong: readonly string[], more: Partial<Case> = {}): Case => ({
  at,
  toml,
  is,
  wrong,
  ...more,
});
const required = { required: true } as const;
const TEXT = ['3', '""', 'true'];

const NAMES: Cases = {
  name: one('service.name', '"b"', 'b', TEXT, required),
  display_name: one('service.displayName', '"B"', 'B', TEXT, { fallback: 'acme/small' }),
  provider_name: one('service.providerName', '"B"', 'B', TEXT, { fallback: 'acme' }),
  description: one('service.description', '"a\\nb"', 'a\nb', ['3', long(2_001), '"a\\u202eb"', '"a\\tb"'], {
    fallback: '',
  }),
};

/** What a service of a kind that has facts declares about itself. */
const declarations = (facts: 'model' | 'media'): Cases => ({
  data_collection: one(`service.${facts}.collectsNothing`, '"deny"', true, []),
  zdr: one(`service.${facts}.zdr`, 'true', true, []),
  region: one(`service.${facts}.region`, '"eu-1"', 'eu-1', ['3', '""', '"EU"', '"eu "', long(33), '["eu"]']),
});

const stops = (facts: 'model' | 'media'): Cases => ({
  stops: one(`service.${facts}.stops`, 'false', false, ['3', '"all"', '["streams"]']),
});

/** A price, in micro-USD for a million. */
const rate = (meter: Meter, toml: string, is: bigint, changes?: Changes): Case =>
  one(`service.rates.${meter}`, toml, is, [], changes && { with: changes });
/** The price of a part of a model's tokens, and that of a search. */
const part = (meter: Meter, changes?: Changes) => rate(meter, '"2.5"', 2_500_000n, changes);
const search = (meter: Meter) => rate(meter, '0.01', 10_000_000_000n);
const USD_1 = 1_000_000_000_000n;

/** Prices by use of a tool or an agent, each with what it needs. */
const BY_USE: Cases = {
  'pricing.per_second': rate('second', '0.5', USD_1 / 2n, { 'pricing.prompt': '1', 'pricing.per_call_max': '1' }),
  'pricing.prompt': rate('prompt', '1', 1_000_000n, { 'pricing.completion': '1', 'pricing.per_call_max': '1' }),
  'pricing.completion': rate('completion', '1', 1_000_000n, { 'pricing.prompt': '1', 'pricing.per_call_max': '1' }),
  'pricing.per_call_max': one('service.priceCap', '"0.05"', 50_000n, ['-1', '1_001', '0.0000001'], {
    required: true,
    with: { 'pricing.prompt': '1' },
  }),
};

const key = one('target.apiKey', '"std::env::KEY"', 'secret-1', ['3', '"a b"', '"$KEY"'], { fallback: null });
const headTimeout = one('target.timeouts.headMs', '20000', 20_000, []);
const firstEventTimeout = one('target.timeouts.firstEventMs', '20000', 20_000, []);

const packaged = (setting: Changes = {}): Partial<Case> => ({
  with: { 'params.api_base': null, 'params.api_key': null, ...setting },
});
const IN_PACKAGE = packaged({ 'params.sdk': '"@ai-sdk/openai-compatible"' });
const SETTINGS = '{ region = "eu", "headers.x-org" = "acme", retries = 2, fast = true }';
/** Options of a service that is a model of its provider, or of a package of the AI SDK, which this checkout has. */
const params = (model: string): Cases => ({
  'params.model': one(model, '"m"', 'm', ['3', '""', long(257)], required),
  'params.api_base': one('target.url', '"https://x.example/"', 'https://x.example/v1', ['3', '"ftp://x"'], required),
  'params.api_key': key,
  'params.head_timeout_ms': headTimeout,
  'params.sdk': one(
    'target.sdk',
    '"@ai-sdk/openai-compatible#createOpenAICompatible"',
    '@ai-sdk/openai-compatible#createOpenAICompatible',
    ['3', '""', '"../mine"', '"@ai-sdk/"', '"@ai-sdk/is-not-installed"', '"/etc"'],
    packaged(),
  ),
  'params.sdk_settings': one(
    'target.settings',
    SETTINGS,
    { region: 'eu', 'headers.x-org': 'acme', retries: 2, fast: true },
    ['3', '{ region = [1] }', '{ "a b" = 1 }', '{ __proto__ = 1 }', '{ region = "std::env::KEY" }'],
    { fallback: {}, ...IN_PACKAGE },
  ),
  'params.sdk_secrets': one(
    'target.secrets',
    '{ apiKey = "std::env::KEY" }',
    { apiKey: 'secret-1' },
    ['3', '{ apiKey = "the-secret-itself" }', '{ apiKey = "std::env::NOT_SET" }', '{ apiKey = 3 }'],
    { fallback: {}, ...IN_PACKAGE },
  ),
});

const TIERS: Case = one(
  'service.rates.tiers',
  '[{ above = 200_000, prompt = 4, web_search = 0.1 }, { above = 300_000, completion = "5" }]',
  [
    { above: 200_000n, rates: { prompt: 4_000_000n, completion: 2_000_000n, web_search: USD_1 / 10n } },
    { above: 300_000n, rates: { prompt: 4_000_000n, completion: 5_000_000n, web_search: USD_1 / 10n } },
  ],
  [
    '3',
    '[3]',
    '[{ prompt = 4 }]',
    '[{ above = 9 }]',
    '[{ above = 0, prompt = 4 }]',
    '[{ above = 1.5, prompt = 4 }]',
    '[{ above = "9", prompt = 4 }]',
    '[{ above = 100_000_001, prompt = 4 }]',
    '[{ above = 9, prompt = -4 }]',
    '[{ above = 9, promt = 4 }]',
    '[{ above = 9, second = 4 }]',
    '[{ above = 9, prompt = 4 }, { above = 9, prompt = 5 }]',
    '[{ above = 9, prompt = 4 }, { above = 8, prompt = 5 }]',
    `[${listOf(9, (n) => `{ above = ${n + 1}, prompt = 4 }`)}]`,
  ],
  { with: { 'pricing.prompt': '1', 'pricing.completion': '2' } },
);

const SERVICE_TIERS: Case = one(
  'service.variants',
  '{ flex = { prompt = "0.5", tiers = [{ above = 9, completion = 3 }] }, priority = {} }',
  {
    flex: {
      prompt: 500_000n,
      completion: 2_000_000n,
      tiers: [{ above: 9n, rates: { prompt: 500_000n, completion: 3_000_000n } }],
    },
    priority: { prompt: 1_000_000n, completion: 2_000_000n },
  },
  [
    '3',
    '[]',
    '{ flex = 3 }',
    '{ Flex = { prompt = 1 } }',
    '{ default = { prompt = 1 } }',
    '{ auto = { prompt = 1 } }',
    '{ standard = { prompt = 1 } }',
    '{ __proto__ = { prompt = 1 } }',
    '{ flex = { promt = 1 } }',
    '{ flex = { above = 1 } }',
    '{ flex = { tiers = 3 } }',
    '{ flex = { tiers = [{ prompt = 3 }] } }',
    `{ ${listOf(9, (n) => `t${n} = { prompt = 4 }`)} }`,
  ],
  { fallback: {}, with: { 'pricing.prompt': '1', 'pricing.completion': '2' } },
);

const ANSWER_TOKENS = ['0', '131_073', '"1"'];
const FORWARDED = ['"some"', '3', '[3]', '["a b"]', '[""]', '["__proto__ "]', `[${listOf(65, (n) => `"f${n}"`)}]`];
const BATCHES = {
  with: { 'pricing.prompt': '1', 'pricing.completion': '2', 'pricing.service_tiers': '{ batch = { prompt = 0.5 } }' },
};

const MODELS: Cases = {
  ...NAMES,
  ...declarations('model'),
  ...stops('model'),
  quantization: one('service.model.quantization', '"fp8"', 'fp8', ['"unknown"', '"fp7"']),
  context_length: one('service.model.contextLength', '100', 100, [], { fallback: 131_072 }),
  max_output_tokens: one('service.model.maxOutputTokens', '99', 99, ANSWER_TOKENS, {
    fallback: null,
    writtenAs: 'params.max_output_tokens',
  }),
  input_modalities: one(
    'service.model.inputModalities',
    '["audio", "text"]',
    ['audio', 'text'],
    ['[]', '["smell"]', '"text"'],
    { fallback: ['text'] },
  ),
  output_modalities: one('service.model.outputModalities', '["image"]', ['image'], ['[]', '[1]'], {
    fallback: ['text'],
  }),
  'pricing.prompt': { ...part('prompt'), ...required },
  'pricing.completion': { ...part('completion'), ...required },
  'pricing.input_cache_read': rate('input_cache_read', '0', 0n),
  'pricing.input_cache_write': part('input_cache_write'),
  'pricing.input_cache_write_1h': part('input_cache_write_1h'),
  'pricing.image': rate('image', '1', USD_1),
  'pricing.audio': part('audio'),
  'pricing.input_audio_cache': part('input_audio_cache', { 'pricing.audio': '3' }),
  'pricing.internal_reasoning': part('internal_reasoning'),
  'pricing.audio_output': part('audio_output'),
  'pricing.image_output': part('image_output'),
  'pricing.web_search': search('web_search'),
  'pricing.character': part('character', { output_modalities: '["speech"]' }),
  // A sixtieth.
  'pricing.per_minute': rate('second', '"0.0043"', 71_666_666n, { output_modalities: '["transcription"]' }),
  'pricing.per_call': search('call'),
  'pricing.tiers': TIERS,
  'pricing.service_tiers': SERVICE_TIERS,
  ...params('service.model.upstreamModel'),
  'params.first_event_timeout_ms': firstEventTimeout,
  'params.cap': one('service.model.cap', '"max_completion_tokens"', 'max_completion_tokens', ['"max-tokens"']),
  'params.max_output_tokens': one('service.model.maxOutputTokens', '98', 98, ANSWER_TOKENS, { fallback: null }),
  'params.wires': one('service.model.wires', '["chat", "messages"]', ['messages'], ['"messages"', '["mcp"]', '[1]']),
  'params.prefill': one('service.model.prefill', '"prefix"', 'prefix', ['"yes"', 'true']),
  continue: one('service.model.continues', 'true', true, []),
  'params.forward': one('service.model.forward', '["top_n_sigma", "top_n_sigma"]', ['top_n_sigma'], FORWARDED),
  'params.strict_fields': one('service.model.strictFields', 'true', true, []),
  'params.image_tokens_max': one('service.model.imageTokensMax', '26_000', 26_000, []),
  'params.hidden_reasoning_max': one('service.model.hiddenReasoning', '5000', { max: 5_000, usual: 0 }, []),
  'params.hidden_reasoning_usual': one('service.model.hiddenReasoning.usual', '700', 700, ['701'], {
    fallback: 0,
    with: { 'params.hidden_reasoning_max': '700' },
  }),
  cost: one(
    'target.cost',
    '{ prompt = 2, completion = "2.5", tiers = [{ above = 100, prompt = 3 }], service_tiers = { flex = { prompt = 1 } } }',
    {
      rates: {
        prompt: 2_000_000n,
        completion: 2_500_000n,
        tiers: [{ above: 100n, rates: { prompt: 3_000_000n, completion: 2_500_000n } }],
      },
      serviceTiers: { flex: { prompt: 1_000_000n, completion: 2_500_000n } },
    },
    ['3', '{ prompt = -1 }', '{ words = 1 }', '{ tiers = 3 }', '{ service_tiers = { default = { prompt = 1 } } }'],
  ),
  'params.own_keys': one('target.ownKeys', 'true', true, []),
  'params.batches': one('target.batches', 'true', true, [], BATCHES),
  'params.searches_max': one('service.model.searchesMax', '3', 3, []),
};

const command = (fallback: unknown): Partial<Case> => ({ fallback, with: { endpoint: null, command: '"run"' } });
const ADDRESS = ['3', '"x.example"', '"https://k@x.example"', '"https://x.example/?key=1"'];
const PATHS = ['3', '"rpc"', '"/../x"', '"/a b"', '"//x.example"'];

const COST = { per_call: '0.5', per_second: '0.1', prompt: '2' } as const;
const COST_RATES = { call: USD_1 / 2n, second: USD_1 / 10n, prompt: 2_000_000n };
const costOf = (entries: object, value: object, wrong: readonly string[]) =>
  one(
    'target.cost',
    `{ ${Object.entries(entries)
      .map(([name, each]) => `${name} = ${each}`)
      .join(', ')} }`,
    value,
    ['3', '{}', '{ per_call = -1 }', '{ words = 1 }', '{ tiers = [] }', ...wrong],
  );

const TOOLS: Cases = {
  ...NAMES,
  ...BY_USE,
  'pricing.per_call': { ...rate('call', '"0.5"', USD_1 / 2n), ...required },
  'pricing.per_call_max': { ...BY_USE['pricing.per_call_max']!, wrong: ['-1', '1_001', '0.0000001', '0'] },
  'pricing.tools': one(
    'service.variants',
    '{ search = 2, "a.b/c-d" = 0 }',
    { search: { call: 2n * USD_1 }, 'a.b/c-d': { call: 0n } },
    ['3', '{ search = -1 }', '{ "a b" = 1 }', '{ constructor = 1 }', '{ __proto__ = 1 }'],
    { fallback: {} },
  ),
  cost: costOf(
    { ...COST, tools: '{ search = 0.002 }' },
    {
      rates: COST_RATES,
      serviceTiers: {},
      variants: { search: { ...COST_RATES, call: USD_1 / 500n } },
    },
    [
      '{ tools = 3 }',
      '{ tools = { search = -1 } }',
      '{ tools = { "a b" = 1 } }',
      '{ tools = { constructor = 1 } }',
      '{ per_task = 1 }',
      '{ tools = {} }',
    ],
  ),
  endpoint: one('target.url', '"https://x.example/mcp/"', 'https://x.example/mcp/', ADDRESS, {
    with: { command: null },
  }),
  api_key: key,
  head_timeout_ms: headTimeout,
  command: one('target.command', '"npx"', 'npx', ['3', '""', '"a\\u0000b"'], { with: { endpoint: null } }),
  args: one('target.args', '["-y", "x"]', ['-y', 'x'], ['"x"', '[1]', '["std::env::KEY"]'], command([])),
  env: one(
    'target.env',
    '{ TOKEN = "std::env::KEY", MODE = "" }',
    { TOKEN: 'secret-1', MODE: '' },
    ['3', '{ TOKEN = 3 }', '{ "A B" = "x" }', '{ TOKEN = "std::env::ABSENT" }'],
    command({}),
  ),
  cwd: one('target.cwd', '"work"', '/etc/acme/work', ['3', '""'], command(null)),
  shared: one('target.shared', 'true', true, [], command(false)),
  sessions_max: one('target.sessionsMax', '1000', 1_000, [], command(16)),
  session_idle_ms: one('target.sessionIdleMs', '1000', 1_000, [], command(300_000)),
  roots: one('target.roots', 'true', true, [], command(false)),
};

const AGENTS: Cases = {
  ...NAMES,
  ...BY_USE,
  agent_card_path: one('service.agent.cardPath', '"/card.json"', '/card.json', PATHS, {
    fallback: '/.well-known/agent-card.json',
  }),
  rpc_path: one('service.agent.rpcPath', '"/rpc"', '/rpc', PATHS, { fallback: null }),
  'pricing.per_call': rate('call', '1', USD_1, { 'pricing.prompt': '1', 'pricing.per_call_max': '1' }),
  'pricing.per_task': one('service.agent.chargedPer', '1', 'task', [], {
    fallback: 'message',
    with: { 'pricing.per_call': null, 'pricing.prompt': '1', 'pricing.per_call_max': '1' },
  }),
  'pricing.nested_max': one('service.agent.nestedMax', '1', 1_000_000n, ['-1', '1_001'], { fallback: 0n }),
  cost: costOf(COST, { rates: COST_RATES, serviceTiers: {} }, [
    '{ tools = { a = 1 } }',
    '{ per_call = 1, per_task = 1 }',
  ]),
  endpoint: one('target.url', '"https://x.example/a/"', 'https://x.example/a', ['3', '"x.example"'], required),
  api_key: key,
  head_timeout_ms: headTimeout,
  first_event_timeout_ms: firstEventTimeout,
};

const list = (field: string, good: string, bad: string): Case =>
  one(
    `service.media.${field}`,
    `["${good}", "${good}"]`,
    [good],
    ['"x"', '[3]', `["${bad}"]`, `[${'"x",'.repeat(200)}]`],
    {
      fallback: [],
    },
  );
const MEDIA: Cases = {
  ...NAMES,
  ...declarations('media'),
  ...params('service.media.upstreamModel'),
  supported_params: list('supportedParams', 'seed', 'Not this'),
  aspect_ratios: list('aspectRatios', '16:9', '0:9'),
  quotes: one('service.media.unquoted', 'false', true, []),
};
const EDITS = { 'params.edits': 'true' };
const HALF = { image: USD_1 / 2n };

const IMAGES: Cases = {
  ...MEDIA,
  ...stops('media'),
  aspect_ratios: list('aspectRatios', '9:16', '16x9'),
  formats: list('formats', 'png', 'bmp'),
  resolutions: list('resolutions', '1K', '../1K'),
  'pricing.generation': { ...rate('image', '1', USD_1), ...required },
  'pricing.resolutions': one(
    'service.variants',
    '{ 1K = 0.5 }',
    { '1K': HALF },
    ['3', '{ 1K = -1 }', '{ "1 K" = 1 }', '{ constructor = 1 }'],
    { fallback: {} },
  ),
  'pricing.variants': one(
    'service.variants',
    '{ "1K/high" = 0.5 }',
    { '1K/high': HALF },
    [
      '3',
      '{ "1K/high" = -1 }',
      '{ "1K" = 1 }',
      '{ "edit/high" = 1 }',
      '{ "1K/best" = 1 }',
      '{ "constructor/high" = 1 }',
    ],
    { fallback: {} },
  ),
  'pricing.prompt': part('prompt'),
  'pricing.edit': one('service.variants.edit', '0.5', HALF, [], { with: EDITS }),
  'pricing.input_image': one('service.variants.edit', '0.5', { image: 30_000_000_000n, input_image: USD_1 / 2n }, [], {
    with: EDITS,
  }),
  cost: one(
    'target.cost',
    '{ generation = 0.5, resolutions = { 2K = 1 }, variants = { "2K/high" = 2 }, edit = 3, prompt = 4 }',
    {
      rates: { ...HALF, prompt: 4_000_000n },
      serviceTiers: {},
      variants: {
        '2K': { image: USD_1, prompt: 4_000_000n },
        '2K/high': { image: 2n * USD_1, prompt: 4_000_000n },
        edit: { image: 3n * USD_1, prompt: 4_000_000n },
      },
    },
    ['3', '{}', '{ per_second = 1 }', '{ resolutions = {} }', '{ variants = { "1K/best" = 1 } }', '{ edit = -1 }'],
  ),
  'params.wire': one('service.media.imageApi.wire', '"tollgate"', 'tollgate', ['"smtp"']),
  'params.edits': one('service.media.imageApi.edits', 'true', true, []),
  'params.body': one('service.media.imageApi.body', '"json"', 'json', [], { fallback: 'multipart', with: EDITS }),
  'params.first_event_timeout_ms': firstEventTimeout,
};

const VIDEOS: Cases = {
  ...MEDIA,
  durations: list('durations', '5s', '5'),
  'params.inputs': one('service.media.filesOnly', '"files"', true, ['"bytes"']),
  'pricing.per_second': one(
    'service.variants.4k',
    '{ 4k = 0.5 }',
    { second: USD_1 / 2n },
    ['3', '{ 4k = -1 }', '{ 4k = 101 }', '{ 8k = 1 }', '{ }'],
    required,
  ),
  'pricing.base': rate('call', '1', USD_1),
  'pricing.audio_multiplier': one(
    'service.variants.720p+audio',
    '1.5',
    { second: 150_000_000_000n },
    ['0.9', '10.1', '-2', '"loud"', 'nan', 'true', '1.0000001'],
    { fallback: { second: 100_000_000_000n } },
  ),
  cost: one(
    'target.cost',
    '{ per_second = { "720p" = 1 }, base = 0.5, audio_multiplier = 2 }',
    {
      rates: { second: 2n * USD_1, call: USD_1 / 2n },
      serviceTiers: {},
      variants: {
        '720p': { second: USD_1, call: USD_1 / 2n },
        '720p+audio': { second: 2n * USD_1, call: USD_1 / 2n },
      },
    },
    [
      '3',
      '{}',
      '{ audio_multiplier = 2 }',
      '{ per_second = { "8k" = 1 } }',
      '{ generation = 1 }',
      '{ base = 1, audio_multiplier = 0 }',
    ],
  ),
};

/** Every option of every kind of block is set by one case. */
export const CASES: Readonly<Record<BlockTable, Cases>> = {
  models: MODELS,
  tools: TOOLS,
  agents: AGENTS,
  images: IMAGES,
  videos: VIDEOS,
};
