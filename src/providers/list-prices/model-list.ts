import { keyHeaders, NATIVE_APIS } from '#config';
import { CHAT_MODALITIES } from '#config/model-kinds';
import { KNOWN_PROVIDERS, type ListedProvider } from '#config/known-providers';
import { BOUNDS, fetchText, isObject, readForeign, type JsonObject } from '#wire';

/* The models that a provider lists for a key, as `GET /models` of its API tells them. */

/** A model of a list, with what the provider says about it. null where it says nothing. */
export interface ListedModel {
  readonly id: string;
  readonly contextLength: number | null;
  readonly maxOutputTokens: number | null;
  readonly inputModalities: readonly string[] | null;
  /** USD for 1M tokens, by the keys of `pricing`. */
  readonly prices: Readonly<Record<string, number>> | null;
  /** Why it cannot be called by chat or for embeddings. null if it can, or nothing is said. */
  readonly unfit: string | null;
}

const ASK_MS = 5_000;
const MODELS_MAX = 5_000;

/** The provider does not accept the key. */
export class KeyRefused extends Error {
  override readonly name = 'KeyRefused';
}

/**
 * Asks a provider for its models. Takes at most 5 s. Rejects with a message for people, without secrets: KeyRefused if
 * the key is not accepted. The provider must have a list, see KnownProvider.
 */
export async function listModels(
  { use, url, apiKey }: Pick<ListedProvider, 'use' | 'url' | 'apiKey'>,
  signal?: AbortSignal,
): Promise<readonly ListedModel[]> {
  const { path, toBase = (base: string) => base, headersOf } = KNOWN_PROVIDERS[use].lists!;
  const address = `${toBase(url)}${path}`;
  const { host } = new URL(address);
  const api = headersOf === undefined ? null : NATIVE_APIS[headersOf];
  const headers = { ...keyHeaders(apiKey, api?.at ?? ''), ...api?.headers };
  const timeout = AbortSignal.timeout(ASK_MS);
  const { status, text } = await fetchText(address, {
    headers,
    bytesMax: BOUNDS.modelList.bytesMax,
    signal: signal === undefined ? timeout : AbortSignal.any([signal, timeout]),
  }).catch((error: unknown) => {
    throw new Error(`${host} could not be asked for its models: ${reasonOf(error)}`, { cause: error });
  });
  if (status === 401) throw new KeyRefused(`${host} does not accept the key (401)`);
  if (status < 200 || status > 299) throw new Error(`${host} answered ${status} to the question for its models`);
  const items = await itemsOf(text);
  if (items === null) throw new Error(`${host} did not answer with a list of models`);
  return items.slice(0, MODELS_MAX).flatMap((item) => toModel(item) ?? []);
}

/** The cause of a failed fetch, whose own message is always "fetch failed". */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.name === 'TimeoutError') return `no answer within ${ASK_MS / 1000} seconds`;
  const { cause } = error;
  if (!(cause instanceof Error)) return error.message;
  return cause.message || ('code' in cause ? String(cause.code) : error.message);
}

/** The objects of a list: a list itself, or the one in `data` or `models`. null for anything else. */
async function itemsOf(text: string): Promise<readonly JsonObject[] | null> {
  const value = await readForeign(text, BOUNDS.modelList).catch(() => null);
  const list: unknown = isObject(value) ? (value['data'] ?? value['models']) : value;
  return Array.isArray(list) ? (list as readonly unknown[]).slice(0, MODELS_MAX).filter(isObject) : null;
}

const NAME_CHARS_MAX = 256;

/** The facts of one item, by the names that the APIs of providers have for them. null without a name that is short. */
function toModel(item: JsonObject): ListedModel | null {
  const { id = item['name'] } = item;
  if (typeof id !== 'string' || id === '' || id.length > NAME_CHARS_MAX) return null;
  const top = isObject(item['top_provider']) ? item['top_provider'] : {};
  return {
    // Google's names begin with the collection.
    id: id.replace(/^models\//, ''),
    contextLength: first(
      item['context_length'],
      item['context_window'],
      item['max_context_length'],
      item['max_input_tokens'],
      item['max_model_len'],
      item['inputTokenLimit'],
    ),
    maxOutputTokens: first(
      top['max_completion_tokens'],
      item['max_completion_tokens'],
      item['max_output_tokens'],
      item['max_tokens'],
      item['outputTokenLimit'],
    ),
    inputModalities: modalitiesOf(item),
    prices: pricesOf(item['pricing']),
    unfit: unfitOf(item),
  };
}

const first = (...values: readonly unknown[]): number | null =>
  values.find((value): value is number => Number.isSafeInteger(value) && (value as number) > 0) ?? null;

function modalitiesOf({ architecture, input_modalities: own, capabilities }: JsonObject): readonly string[] | null {
  const listed: unknown = own ?? (isObject(architecture) ? architecture['input_modalities'] : null);
  if (Array.isArray(listed)) {
    const known = (listed as readonly unknown[]).filter((one): one is string =>
      CHAT_MODALITIES.includes(one as string),
    );
    if (known.length > 0) return known;
  }
  if (!isObject(capabilities)) return null;
  const { vision, image_input: image, pdf_input: pdf } = capabilities;
  if (typeof vision === 'boolean') return vision ? ['text', 'image'] : ['text'];
  const supports = (capability: unknown) => isObject(capability) && capability['supported'] === true;
  if (!isObject(image)) return null;
  return ['text', ...(supports(image) ? ['image'] : []), ...(supports(pdf) ? ['file'] : [])];
}

/** OpenRouter names USD for one token as text, Together USD for 1M tokens as numbers. */
function pricesOf(pricing: unknown): ListedModel['prices'] {
  if (!isObject(pricing)) return null;
  const ofToken = (value: unknown) => (typeof value === 'string' ? Number((Number(value) * 1e6).toPrecision(12)) : NaN);
  const prices = {
    prompt: typeof pricing['input'] === 'number' ? pricing['input'] : ofToken(pricing['prompt']),
    completion: typeof pricing['output'] === 'number' ? pricing['output'] : ofToken(pricing['completion']),
    input_cache_read: ofToken(pricing['input_cache_read']),
    input_cache_write: ofToken(pricing['input_cache_write']),
    audio: ofToken(pricing['audio']),
    internal_reasoning: ofToken(pricing['internal_reasoning']),
  };
  const known = Object.entries(prices).filter(([, price]) => price > 0 && price < 10_000);
  return known.length === 0 ? null : Object.fromEntries(known);
}

function unfitOf(item: JsonObject): string | null {
  const { id, active, lifecycle, type, capabilities, supportedGenerationMethods: methods, pricing } = item;
  if (active === false || lifecycle === 'retired') return 'its provider no longer serves it';
  if (typeof type === 'string' && /^(?:image|audio|video|moderation|rerank|transcribe|code-interpreter)$/.test(type))
    return `its provider lists it as "${type}"`;
  if (isObject(capabilities) && capabilities['completion_chat'] === false && !/embed/i.test(String(id)))
    return 'its provider says that it does not chat';
  if (Array.isArray(methods) && !methods.includes('generateContent') && !methods.includes('embedContent'))
    return 'its provider says that it does not chat';
  if (isObject(pricing) && Number(pricing['request']) > 0)
    return 'it charges for each request, which has no price here';
  return null;
}
