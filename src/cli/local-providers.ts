import { fetchText } from '#wire';
import { parseRates } from '#billing';
import { type ServiceConfig, serviceNameFault } from '#config';
import { localModel } from './local-model.ts';

/** A provider that this machine can reach, and to which the development gateway could route. */
export interface LocalProvider {
  readonly name: 'Ollama' | 'OpenAI';
  /** Its name and place, as words for the question. */
  readonly found: string;
  /** The flag that routes to it without asking. */
  readonly flag: '--with-ollama' | '--with-openai';
  /** Asks the provider for its models. Rejects with a message for people. */
  services(): Promise<readonly ServiceConfig[]>;
}

const PROBE_MS = 3_000;
const TICK_MS = 50;
const LIST_MS = 5000;
const LIST_BYTES_MAX = 8 * 1024 * 1024;
const MODELS_MAX = 50;

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Finds providers that answer, or whose key is in the environment. Never rejects. Takes at most three seconds of an
 * idle process, while the demo starts. Usually nothing listens there, which is known at once.
 */
export async function findLocalProviders(env: Environment): Promise<readonly LocalProvider[]> {
  const found: LocalProvider[] = [];
  const ollama = ollamaAddress(env['OLLAMA_HOST']);
  if (ollama && (await answers(`${ollama}/api/tags`))) {
    found.push({
      name: 'Ollama',
      found: `Ollama answers on ${new URL(ollama).host}`,
      flag: '--with-ollama',
      services: () => ollamaServices(ollama),
    });
  }
  const key = env['OPENAI_API_KEY'];
  const base = (env['OPENAI_BASE_URL'] || 'https://api.openai.com/v1').replace(/\/+$/, '');
  // The key of a tollgate belongs to this gateway or to another one. Routing to it would send calls in a circle.
  if (key && !key.startsWith('svc-sk-')) {
    found.push({
      name: 'OpenAI',
      found: 'OPENAI_API_KEY is set',
      flag: '--with-openai',
      services: () => openaiServices(base, key),
    });
  }
  return found;
}

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
  let left = PROBE_MS;
  // The start loads modules meanwhile, which keeps the event loop busy. At most one tick passes in each turn of the
  // loop. So an answer that came in a long turn is read before the time is over.
  const timer = setInterval(() => {
    left -= TICK_MS;
    if (left <= 0) probe.abort();
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

/** The models of Ollama. Calls are free, because it usually runs on the user's own machine. */
async function ollamaServices(base: string): Promise<readonly ServiceConfig[]> {
  const listed = await fetchList(`${base}/api/tags`, {}, 'models', 'name');
  if (listed.length === 0)
    throw new Error('Ollama has no models yet. Fetch one (for example: ollama pull llama3.2) and start again.');
  return listed
    .filter((model) => serviceNameFault(`ollama/${model}`) === null)
    .slice(0, MODELS_MAX)
    .map((model) =>
      localModel({
        name: `ollama/${model}`,
        displayName: `Ollama: ${model}`,
        providerName: 'Ollama',
        rates: parseRates({ prompt: 0, completion: 0 }),
        facts: { upstreamModel: model, contextLength: 8192 },
        url: `${base}/v1`,
        apiKey: null,
      }),
    );
}

/**
 * USD per 1M tokens of input and of output, and the context in tokens. The prices are only indicative, for play money.
 * Other models are not offered.
 */
const OPENAI_MODELS: Readonly<Record<string, readonly [prompt: string, completion: string, context: number]>> = {
  'gpt-5': ['1.25', '10', 400_000],
  'gpt-5-mini': ['0.25', '2', 400_000],
  'gpt-5-nano': ['0.05', '0.4', 400_000],
  'gpt-4.1': ['2', '8', 1_047_576],
  'gpt-4.1-mini': ['0.4', '1.6', 1_047_576],
  'gpt-4o-mini': ['0.15', '0.6', 128_000],
};

async function openaiServices(base: string, key: string): Promise<readonly ServiceConfig[]> {
  const listed = new Set(await fetchList(`${base}/models`, { authorization: `Bearer ${key}` }, 'data', 'id'));
  const models = Object.entries(OPENAI_MODELS).filter(([model]) => listed.has(model));
  if (models.length === 0)
    throw new Error(
      `${new URL(base).host} offers none of ${Object.keys(OPENAI_MODELS).join(', ')}. Name its models in a file: --config FILE`,
    );
  return models.map(([model, [prompt, completion, contextLength]]) =>
    localModel({
      name: `openai/${model}`,
      displayName: `OpenAI: ${model}`,
      providerName: 'OpenAI',
      rates: parseRates({ prompt, completion }),
      facts: { upstreamModel: model, contextLength, inputModalities: ['text', 'image'] },
      url: base,
      apiKey: key,
    }),
  );
}

/** The texts in `field` of each item of the list in `list`. Items of another shape are left out. */
async function fetchList(
  url: string,
  headers: Record<string, string>,
  list: string,
  field: string,
): Promise<readonly string[]> {
  const { host } = new URL(url);
  let body: unknown;
  try {
    const answer = await fetchText(url, { headers, bytesMax: LIST_BYTES_MAX, signal: AbortSignal.timeout(LIST_MS) });
    const { status, text } = answer;
    if (status < 200 || status > 299)
      throw new Error(`${host} answered ${status}${status === 401 ? ': the key is not accepted' : ''}`);
    body = JSON.parse(text);
  } catch (error) {
    throw new Error(`Its models could not be listed: ${error instanceof Error ? error.message : String(error)}`, {
      cause: error,
    });
  }
  const items = (body as Record<string, unknown> | null)?.[list];
  if (!Array.isArray(items)) throw new Error(`${host} did not answer with a list of models`);
  return items
    .map((item: unknown) => (item as Record<string, unknown> | null)?.[field])
    .filter((value) => typeof value === 'string');
}
