import type { Table } from './toml.ts';
import type { NativeWireName } from './native-apis.ts';

/** The largest context that a block may have, in tokens. */
export const TOKENS_MAX = 100_000_000;

/* The providers that `[[providers]]` knows by name. `docs/reference/known-providers.md` has the same table. */

/** A provider that a file may name with `use`. */
export interface KnownProvider {
  readonly name: string;
  /** The base address of its chat API. null if each account has its own: the file must give `api_base`. */
  readonly base: string | null;
  /** Its hosts, if each account has its own address. */
  readonly hosts?: RegExp;
  /** Environment variables that may have the base address, as the programs of the provider read it. */
  readonly baseVariable?: string;
  /** The usual environment variables of its key, in order of precedence. Empty: it usually needs no key. */
  readonly keyVariables: readonly string[];
  /** APIs besides chat that it speaks at the same address. */
  readonly wires?: readonly NativeWireName[];
  /** Its id in the list of prices. null: its models have no list prices, because they run on the operator's machine. */
  readonly prices: string | null;
  /** How to ask for its models. null: its API cannot tell which models this key may call. */
  readonly lists: ModelListing | null;
  /** The field in which it takes the limit of an answer, if it refuses the other one. */
  readonly cap?: 'max_completion_tokens';
  /** Request fields beyond those of the chat API that change no price. Others are not passed on. */
  readonly forward?: readonly string[];
  /**
   * It refuses extensions of the chat API such as `top_k`, or its documentation does not have them. It gets those that
   * `forward` lists. Otherwise it gets all that common servers take.
   */
  readonly strict?: true;
  /** A package of the AI SDK that calls it, for APIs that the gateway does not speak. */
  readonly sdk?: string;
  /**
   * USD for 1,000 web searches where the list of prices has none for a model: the highest price that the provider
   * publishes. Searches are asked for inside a request, so a model without this price would give them away.
   */
  readonly searches?: string;
  /** It has OpenAI's API for speech and transcriptions, at the same address. */
  readonly audio?: true;
  /**
   * See `stops` of a model. The others run on the operator's machine. OpenRouter's page on streaming says at which
   * providers a closed connection ends a stream and its bill, and that it ends no answer in one piece. A provider that
   * the page does not have counts as one of the first.
   */
  readonly stops?: 'streams' | false;
  /** Its service tiers, at its own address. The first that fits a model counts, of each name. */
  readonly tiers?: readonly KnownTier[];
}

/** A service tier of some models, whose prices are those of the list times a fraction. */
export interface KnownTier {
  /** `batch`: that of lines which it gets in a batch. The others are asked for by `service_tier`. */
  readonly tier: 'batch' | 'flex' | 'priority';
  readonly models: RegExp;
  readonly times: Fraction;
  /** Prompts from a cache cost as much as other prompts. */
  readonly cachedAsPrompt?: true;
}

/** Numerator and denominator. */
export type Fraction = readonly [bigint, bigint];

interface ModelListing {
  /** Path of the list below the base address. `toBase` changes the address of the chat API to that of the list. */
  readonly path: string;
  readonly toBase?: (base: string) => string;
  /** The API whose headers the request has. Default: those of chat. */
  readonly headersOf?: NativeWireName;
}

const MODELS: ModelListing = { path: '/models' };

const GPT_5_AND_6 = String.raw`gpt-[56](?:\.\d+)?(?:-mini|-nano|-luna|-terra|-sol|-astra)?`;
/** Models by their names, with or without the date of a version. */
const modelPattern = (...names: readonly string[]) => new RegExp(`^(?:${names.join('|')})(?:-\\d{4}-\\d\\d-\\d\\d)?$`);

/** The tables of OpenAI's prices: what each tier costs, compared with the standard one. */
const OPENAI_TIERS: readonly KnownTier[] = [
  { tier: 'batch', models: modelPattern(GPT_5_AND_6), times: [1n, 2n] },
  {
    tier: 'batch',
    models:
      /^(?!.*(?:audio|realtime|search|transcribe|tts|image|chat-latest|deep-research|instruct|-pro))(?:gpt-[34]|o[134]|text-embedding-)/,
    times: [1n, 2n],
    // The table has no price for them.
    cachedAsPrompt: true,
  },
  { tier: 'flex', models: modelPattern(GPT_5_AND_6, 'o3', 'o4-mini'), times: [1n, 2n] },
  { tier: 'priority', models: modelPattern(String.raw`gpt-5\.5`), times: [5n, 2n] },
  { tier: 'priority', models: modelPattern('gpt-5-mini'), times: [9n, 5n] },
  // Those of nano have none.
  {
    tier: 'priority',
    models: modelPattern(String.raw`gpt-[56](?:\.\d+)?(?:-luna|-terra|-sol|-astra|-codex)?`, String.raw`gpt-5\.4-mini`),
    times: [2n, 1n],
  },
  { tier: 'priority', models: /^gpt-4o-2024-05-13$/, times: [7n, 4n] },
  { tier: 'priority', models: modelPattern(String.raw`gpt-4\.1(?:-mini)?`, 'o3'), times: [7n, 4n] },
  { tier: 'priority', models: modelPattern(String.raw`gpt-4\.1-nano`), times: [2n, 1n] },
  { tier: 'priority', models: modelPattern('gpt-4o'), times: [17n, 10n] },
  { tier: 'priority', models: modelPattern('gpt-4o-mini'), times: [5n, 3n] },
  { tier: 'priority', models: modelPattern('o4-mini'), times: [20n, 11n] },
];

const KNOWN = {
  openai: {
    name: 'OpenAI',
    base: 'https://api.openai.com/v1',
    baseVariable: 'OPENAI_BASE_URL',
    keyVariables: ['OPENAI_API_KEY'],
    wires: ['responses'],
    cap: 'max_completion_tokens',
    prices: 'openai',
    lists: MODELS,
    audio: true,
    searches: '10',
    tiers: OPENAI_TIERS,
    strict: true,
    stops: 'streams',
  },
  anthropic: {
    name: 'Anthropic',
    base: 'https://api.anthropic.com/v1',
    keyVariables: ['ANTHROPIC_API_KEY'],
    wires: ['messages'],
    prices: 'anthropic',
    lists: { path: '/models?limit=1000', headersOf: 'messages' },
    searches: '10',
    strict: true,
    forward: ['thinking'],
    stops: 'streams',
  },
  google: {
    name: 'Google',
    base: 'https://generativelanguage.googleapis.com/v1beta/openai',
    keyVariables: ['GEMINI_API_KEY', 'GOOGLE_API_KEY'],
    wires: ['gemini'],
    prices: 'google',
    // The list of the compatible API has names alone, that of the Gemini API has the limits of each model.
    lists: {
      path: '/models?pageSize=1000',
      toBase: (base) => base.replace(/\/openai$/, ''),
      headersOf: 'gemini',
    },
    searches: '35',
    strict: true,
    stops: false,
  },
  mistral: {
    name: 'Mistral',
    base: 'https://api.mistral.ai/v1',
    keyVariables: ['MISTRAL_API_KEY'],
    prices: 'mistral',
    lists: MODELS,
    audio: true,
    strict: true,
    forward: ['random_seed', 'safe_prompt'],
    stops: false,
  },
  groq: {
    name: 'Groq',
    base: 'https://api.groq.com/openai/v1',
    keyVariables: ['GROQ_API_KEY'],
    prices: 'groq',
    lists: MODELS,
    audio: true,
    strict: true,
    forward: ['reasoning_format'],
    stops: false,
  },
  deepseek: {
    name: 'DeepSeek',
    base: 'https://api.deepseek.com/v1',
    keyVariables: ['DEEPSEEK_API_KEY'],
    prices: 'deepseek',
    lists: MODELS,
    strict: true,
    forward: ['thinking'],
    stops: 'streams',
  },
  xai: {
    name: 'xAI',
    base: 'https://api.x.ai/v1',
    keyVariables: ['XAI_API_KEY'],
    prices: 'x-ai',
    lists: MODELS,
    strict: true,
    stops: 'streams',
  },
  together: {
    name: 'Together',
    base: 'https://api.together.xyz/v1',
    keyVariables: ['TOGETHER_API_KEY'],
    prices: 'together',
    lists: MODELS,
    stops: 'streams',
  },
  openrouter: {
    name: 'OpenRouter',
    base: 'https://openrouter.ai/api/v1',
    keyVariables: ['OPENROUTER_API_KEY'],
    prices: 'openrouter',
    lists: MODELS,
    forward: ['reasoning'],
    stops: 'streams',
  },
  fireworks: {
    name: 'Fireworks',
    base: 'https://api.fireworks.ai/inference/v1',
    keyVariables: ['FIREWORKS_API_KEY'],
    prices: 'fireworks',
    lists: MODELS,
    stops: 'streams',
  },
  cerebras: {
    name: 'Cerebras',
    base: 'https://api.cerebras.ai/v1',
    keyVariables: ['CEREBRAS_API_KEY'],
    prices: 'cerebras',
    lists: MODELS,
    strict: true,
    forward: ['reasoning_format'],
    stops: 'streams',
  },
  moonshot: {
    name: 'Moonshot',
    base: 'https://api.moonshot.ai/v1',
    keyVariables: ['MOONSHOT_API_KEY'],
    prices: 'moonshotai',
    lists: MODELS,
    strict: true,
    forward: ['thinking'],
    stops: 'streams',
  },
  zai: {
    name: 'Z.AI',
    base: 'https://api.z.ai/api/paas/v4',
    keyVariables: ['ZAI_API_KEY'],
    prices: 'zai',
    lists: MODELS,
    strict: true,
    forward: ['thinking'],
    stops: 'streams',
  },
  azure: {
    name: 'Azure',
    base: null,
    hosts: /\.(?:openai|services\.ai)\.azure\.com$/,
    keyVariables: ['AZURE_OPENAI_API_KEY', 'AZURE_API_KEY'],
    cap: 'max_completion_tokens',
    prices: 'azure',
    // Its list has all models of the region. Those that can be called are the deployments, which no key may list.
    lists: null,
    strict: true,
    stops: 'streams',
  },
  bedrock: {
    name: 'Bedrock',
    base: null,
    hosts: /^bedrock-runtime\.[a-z\d-]+\.amazonaws\.com$/,
    keyVariables: ['AWS_BEARER_TOKEN_BEDROCK'],
    prices: 'aws',
    lists: null,
    sdk: '@ai-sdk/amazon-bedrock',
    stops: false,
  },
  ollama: {
    name: 'Ollama',
    base: 'http://127.0.0.1:11434/v1',
    keyVariables: [],
    prices: null,
    lists: MODELS,
    forward: ['think'],
  },
  vllm: {
    name: 'vLLM',
    base: 'http://127.0.0.1:8000/v1',
    keyVariables: [],
    prices: null,
    lists: MODELS,
    forward: ['chat_template_kwargs'],
  },
} satisfies Readonly<Record<string, KnownProvider>>;

export type KnownProviderName = keyof typeof KNOWN;

export const KNOWN_PROVIDERS: Readonly<Record<KnownProviderName, KnownProvider>> = KNOWN;
export const KNOWN_PROVIDER_NAMES = Object.keys(KNOWN) as readonly KnownProviderName[];

const hostOf = (url: string): string | undefined => URL.parse(url)?.host;

const BY_HOST: ReadonlyMap<string | undefined, KnownProviderName> = new Map(
  KNOWN_PROVIDER_NAMES.flatMap((name) => {
    const { base } = KNOWN_PROVIDERS[name];
    return base === null ? [] : [[hostOf(base), name] as const];
  }),
);

/** The provider whose API has this address, whatever the path; undefined if it is of none that is known. */
export function knownProviderAt(url: string): KnownProviderName | undefined {
  const host = hostOf(url);
  return BY_HOST.get(host) ?? KNOWN_PROVIDER_NAMES.find((name) => KNOWN_PROVIDERS[name].hosts?.test(host ?? ''));
}

/** A `[[providers]]` block: a provider that is known by name, whose models are offered at its list prices. */
export interface ListedProvider {
  /** Its place in the file: `providers[0]`. */
  readonly path: string;
  readonly use: KnownProviderName;
  /** Beginning of the names of its models, without the slash. */
  readonly prefix: string;
  /** null: the prefix. */
  readonly providerName: string | null;
  /** Base address of its chat API. '' for a package. */
  readonly url: string;
  /** Secret. */
  readonly apiKey: string | null;
  /** The environment variable that has the key. null without a key. */
  readonly keyVariable: string | null;
  /** Hundredths of a percent that are added to each list price. */
  readonly markupBps: number;
  /** Patterns of the models that are offered. Empty: all. */
  readonly only: readonly string[];
  /** Patterns of the models that are not. */
  readonly except: readonly string[];
  /** `pricing` of the models that have no list price. null: they are not offered. */
  readonly pricing: Table | null;
  /** Settings of single models, by their names at the provider: those of `[[models]]`, and `priced_as`. */
  readonly models: Readonly<Record<string, Table>>;
  readonly sdkSettings: Readonly<Record<string, string | number | boolean>>;
}

/** A model that the list of a provider has, as the block that a file would have for it. */
export interface OfferedBlock {
  readonly path: string;
  readonly block: Table;
}
