import { type ServiceConfig, serviceNameFault, type ModelFacts, type Environment } from '#config';
import { KNOWN_PROVIDER_NAMES, KNOWN_PROVIDERS, type KnownProviderName } from '#config/known-providers';
import { BOUNDS, fetchText, foreignObject, isObject } from '#wire';
import { parseRates, type Rates } from '#billing/amounts';

/** A provider that this machine can reach, and to which the development gateway could route. */
export interface LocalProvider {
  readonly name: string;
  /** Its name in `[[providers]]`, by which its models are offered at their list prices. null for Ollama. */
  readonly use: KnownProviderName | null;
  /** Its name and place, as words for the question. */
  readonly origin: string;
  /** The flag that routes to it without asking. */
  readonly flag: string;
  /** Asks the provider for services that have no list price. Rejects with a message for people. */
  services(): Promise<readonly ServiceConfig[]>;
}

const PROBE_MS = 3_000;
const TICK_MS = 50;

/**
 * Finds providers that answer, or whose key is in the environment. Never rejects. Takes at most three seconds of an
 * idle process, while the demo starts. Usually nothing listens there, which is known at once.
 */
export async function findLocalProviders(env: Environment): Promise<readonly LocalProvider[]> {
  const providers: LocalProvider[] = [];
  const ollama = ollamaAddress(env['OLLAMA_HOST']);
  if (ollama && (await answers(`${ollama}/api/tags`))) {
    providers.push({
      name: 'Ollama',
      use: null,
      origin: `Ollama answers on ${new URL(ollama).host}`,
      flag: '--with-ollama',
      services: () => ollamaServices(ollama),
    });
  }
  for (const use of offeredByKey) {
    const { name, keyVariables } = KNOWN_PROVIDERS[use];
    const variable = keyVariables.find((one) => env[one]);
    // The key of a tollgate belongs to this gateway or to another one. Routing to it would send calls in a circle.
    if (variable === undefined || env[variable]!.startsWith('svc-sk-')) continue;
    providers.push({
      name,
      use,
      origin: `${variable} is set`,
      flag: use === 'openai' ? '--with-openai' : `--with ${use}`,
      services: async () => (use === 'openai' ? openaiImages(env, env[variable]!) : []),
    });
  }
  return providers;
}

/** Providers that a key in the environment is enough for. */
export const offeredByKey = KNOWN_PROVIDER_NAMES.filter(
  (use) => KNOWN_PROVIDERS[use].lists !== null && KNOWN_PROVIDERS[use].keyVariables.length > 0,
);

/**
 * The address in OLLAMA_HOST, read as Ollama does: host, host:port or URL. A listening address means this machine. Null
 * if it cannot be parsed.
 */
function ollamaAddress(host: string | undefined): string | null {
  const text = host?.trim() || '127.0.0.1:11434';
  const url = text.includes('://') ? text : `http://${text}`;
  if (!URL.canParse(url)) return null;
  const { protocol, hostname, port } = new URL(url);
  if (!hostname || !/^https?:$/.test(protocol)) return null;
  const local = hostname === '0.0.0.0' ? '127.0.0.1' : hostname === '[::]' ? '[::1]' : hostname;
  return `${protocol}//${local}:${port || (text.includes('://') ? (protocol === 'https:' ? '443' : '80') : '11434')}`;
}

async function answers(url: string): Promise<boolean> {
  const probe = new AbortController();
  let remaining = PROBE_MS;
  // The start loads modules meanwhile, which keeps the event loop busy. At most one tick passes in each turn of the
  // loop. So an answer that came in a long turn is read before the time is over.
  const timer = setInterval(() => {
    remaining -= TICK_MS;
    if (remaining <= 0) probe.abort();
  }, TICK_MS);
  try {
    const response = await fetch(url, { signal: probe.signal, redirect: 'error' });
    await response.body?.cancel();
    return response.ok;
  } catch {
    return false;
  } finally {
    clearInterval(timer);
  }
}

const MODELS_MAX = 50;
/** For a model that does not say how long its context is. */
const CONTEXT = 8192;
const LATEST = ':latest';
/** Families of models that only make embeddings, for versions of Ollama that tell no capabilities. */
const EMBEDS = /bert|embed|bge|minilm/i;

/** The models of Ollama. Calls are free, because it usually runs on the user's own machine. `base`: its address. */
async function ollamaServices(base: string): Promise<readonly ServiceConfig[]> {
  const listed = (await listLocal(`${base}/api/tags`, 'models', 'OLLAMA_HOST says where it is')).flatMap(({ name }) =>
    typeof name === 'string' && serviceNameFault(`ollama/${name}`) === null ? [name] : [],
  );
  if (listed.length === 0)
    throw new Error('Ollama has no models yet. Fetch one (for example: ollama pull llama3.2) and start again.');
  const models = listed.slice(0, MODELS_MAX);
  const facts = await Promise.all(models.map((model) => factsOf(base, model)));
  return models.flatMap((model, index) =>
    namesOf(model).map((name) =>
      localModel({
        name: `ollama/${name}`,
        displayName: `Ollama: ${name}`,
        providerName: 'Ollama',
        rates: parseRates({ prompt: 0, completion: 0 }),
        facts: { upstreamModel: model, ...facts[index]! },
        url: `${base}/v1`,
        apiKey: null,
      }),
    ),
  );
}

/** Ollama calls `llama3.2:latest` also `llama3.2`, and people do. */
const namesOf = (model: string): readonly string[] =>
  model.endsWith(LATEST) ? [model.slice(0, -LATEST.length), model] : [model];

/** The facts that Ollama tells of a model. One that it does not tell has the usual value. */
async function factsOf(base: string, model: string) {
  const facts = await askLocal(`${base}/api/show`, { body: { model } }).then(
    ({ status, text }) => (status === 200 ? foreignObject(text, BOUNDS.modelList) : null),
    () => null,
  );
  const { capabilities, details, model_info: info, parameters } = facts ?? {};
  const can = Array.isArray(capabilities) ? capabilities : null;
  const family = isObject(details) && typeof details['family'] === 'string' ? details['family'] : '';
  const embeds = can === null ? EMBEDS.test(family) : can.includes('embedding') && !can.includes('completion');
  return {
    contextLength: contextOf(info, parameters),
    ...(embeds ? { outputModalities: ['embeddings'] } : {}),
    ...(can?.includes('vision') ? { inputModalities: ['text', 'image'] } : {}),
  };
}

/** The context that a model is run with, if its parameters set one, else the longest that it can have. */
function contextOf(info: unknown, parameters: unknown): number {
  const set = typeof parameters === 'string' ? /^num_ctx\s+(\d{1,9})\s*$/m.exec(parameters)?.[1] : undefined;
  const longest = isObject(info) ? Object.entries(info).find(([name]) => name.endsWith('.context_length'))?.[1] : null;
  const context = set === undefined ? longest : Number(set);
  return Number.isSafeInteger(context) && (context as number) > 0 ? (context as number) : CONTEXT;
}

type ImagePrices = Readonly<Record<'image' | 'input_image' | 'prompt', string>>;

/** USD per image, in medium quality, per image that is edited, and per 1M tokens of words. */
const IMAGES: Readonly<Record<string, ImagePrices>> = {
  'gpt-image-1': { image: '0.042', input_image: '0.005', prompt: '5' },
  'gpt-image-1-mini': { image: '0.011', input_image: '0.002', prompt: '2' },
};

/**
 * The image models that OpenAI lists for this key, with indicative prices for play money. Rejects with a message for
 * people.
 */
async function openaiImages(env: Environment, key: string): Promise<readonly ServiceConfig[]> {
  const base = (env['OPENAI_BASE_URL'] || 'https://api.openai.com/v1').replace(/\/+$/, '');
  const headers = { authorization: `Bearer ${key}` };
  const items = await listLocal(`${base}/models`, 'data', 'OPENAI_BASE_URL says where it is', { headers });
  const listed = new Set(items.map(({ id }) => id));
  return Object.entries(IMAGES).flatMap(([model, prices]) =>
    listed.has(model)
      ? [
          localImages({
            name: `openai/${model}`,
            displayName: `OpenAI: ${model}`,
            // The name that the models of `[[providers]]` have.
            providerName: 'openai',
            url: base,
            apiKey: key,
            prices,
            upstreamModel: model,
          }),
        ]
      : [],
  );
}

/**
 * A chat model that the command line adds without a file. It is like a `[[models]]` block. By default its input and
 * output are text.
 */
export function localModel(model: {
  readonly name: string;
  readonly displayName: string;
  readonly providerName: string;
  readonly rates: Rates;
  readonly facts: Pick<ModelFacts, 'upstreamModel' | 'contextLength'> & Partial<ModelFacts>;
  readonly url: string;
  readonly apiKey: string | null;
}): ServiceConfig {
  const { name, displayName, providerName, rates, facts, url, apiKey } = model;
  return {
    service: {
      primitive: 'model',
      name,
      displayName,
      providerName,
      description: '',
      rates,
      variants: {},
      model: { maxOutputTokens: null, inputModalities: ['text'], outputModalities: ['text'], ...facts },
    },
    target: { kind: 'http', url, apiKey },
  };
}

/** An image service of OpenAI's API that the command line adds without a file. */
function localImages(model: {
  readonly name: string;
  readonly displayName: string;
  readonly providerName: string;
  readonly prices: ImagePrices;
  readonly upstreamModel: string;
  readonly url: string;
  readonly apiKey: string;
}): ServiceConfig {
  const { name, displayName, providerName, prices, upstreamModel, url, apiKey } = model;
  const { input_image: _, ...rest } = prices;
  return {
    service: {
      primitive: 'image',
      name,
      displayName,
      providerName,
      description: '',
      rates: parseRates(rest),
      variants: { edit: parseRates(prices) },
      media: {
        upstreamModel,
        supportedParams: ['quality', 'background', 'moderation', 'output_format', 'output_compression', 'stream'],
        aspectRatios: ['1:1', '3:2', '2:3'],
        formats: ['png', 'jpeg', 'webp'],
        resolutions: [],
        durations: [],
        imageApi: { wire: 'openai', edits: true, body: 'multipart' },
      },
    },
    target: { kind: 'http', url, apiKey },
  };
}

const ASK_MS = 5000;
const BYTES_MAX = 8 * 1024 * 1024;

interface ProbeRequest {
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as JSON by POST. Default: GET. */
  readonly body?: object;
}

/** Asks a provider of this machine's user. Rejects with the reason why no answer came, in words for people. */
async function askLocal(url: string, { headers = {}, body }: ProbeRequest = {}) {
  try {
    return await fetchText(url, {
      headers,
      ...(body === undefined ? {} : { body }),
      bytesMax: BYTES_MAX,
      signal: AbortSignal.timeout(ASK_MS),
    });
  } catch (error) {
    throw new Error(reasonOf(error), { cause: error });
  }
}

/** The cause of a failed fetch, whose own message is always "fetch failed". For several addresses it is only a code. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.name === 'TimeoutError') return `no answer within ${ASK_MS / 1000} seconds`;
  const { cause } = error;
  if (!(cause instanceof Error)) return error.message;
  const code = 'code' in cause ? String(cause.code) : '';
  return cause.message || code || error.message;
}

/**
 * The objects of the list `list` in the answer. Rejects with a message for people, which names the address. `hint`: how
 * to say where the provider is.
 */
async function listLocal(
  url: string,
  list: string,
  hint: string,
  request: ProbeRequest = {},
): Promise<readonly Readonly<Record<string, unknown>>[]> {
  const { host } = new URL(url);
  const { status, text } = await askLocal(url, request).catch((error: unknown) => {
    const reason = error instanceof Error ? error.message : String(error);
    throw new Error(`Its models could not be listed at ${url}: ${reason}. ${hint}`, { cause: error });
  });
  if (status < 200 || status > 299)
    throw new Error(
      `Its models could not be listed: ${host} answered ${status}${status === 401 ? ': the key is not accepted' : ''}`,
    );
  const items = foreignObject(text, BOUNDS.modelList)?.[list];
  if (!Array.isArray(items)) throw new Error(`${host} did not answer with a list of models at ${url}. ${hint}`);
  return items.filter(isObject);
}
