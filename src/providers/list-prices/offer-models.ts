import { imageTokensMax, serviceNameFault } from '#config';
import {
  KNOWN_PROVIDERS,
  type KnownProvider,
  type KnownProviderName,
  type ListedProvider,
  type OfferedBlock,
  TOKENS_MAX,
} from '#config/known-providers';
import { findProvider } from '@pydantic/genai-prices';
import { ownTurn } from '#wire';
import { dearer, listPrice, type ListPrice, type Pricing, tierPrice } from './list-prices.ts';
import { inputKinds, outputMax, type Product, unfit } from './model-facts.ts';
import { KeyRefused, listModels, type ListedModel } from './model-list.ts';

type PriceSource =
  /** The list of prices: the name there, and what its provider's own list added. */
  | { readonly kind: 'list'; readonly pricedAs: string; readonly isRaised: boolean }
  /** `pricing` of the file. */
  | { readonly kind: 'file' };

interface OfferedModel extends OfferedBlock {
  readonly name: string;
  readonly source: PriceSource;
}

export interface WithheldModel {
  readonly name: string;
  readonly why: string;
}

export interface ProviderOffers {
  readonly provider: ListedProvider;
  /**
   * The source of the names: the list of the provider, `only` of the file, or the list of prices if the provider
   * could not be asked. `none`: the provider does not accept the key.
   */
  readonly names: 'provider' | 'file' | 'prices' | 'none';
  /** Why the provider could not be asked now. null if it was, or need not be. */
  readonly problem: string | null;
  readonly offered: readonly OfferedModel[];
  readonly withheld: readonly WithheldModel[];
}

/** Lists that providers gave last, by the path of the block. They are used if a provider does not answer. */
export type LastLists = Map<string, { readonly source: string; readonly models: readonly ListedModel[] }>;

interface OfferOptions {
  /** Epoch milliseconds. */
  readonly now: number;
  /** Whether providers are asked. Otherwise the names are those of the list of prices, or of `last`. */
  readonly ask: boolean;
  readonly last: LastLists;
}

/**
 * The models of each `[[providers]]` block. Providers are asked at the same time, each for at most 5 s. Never rejects
 * because of a provider.
 */
export const offerModels = (
  providers: readonly ListedProvider[],
  options: OfferOptions,
): Promise<readonly ProviderOffers[]> => Promise.all(providers.map((provider) => offerOf(provider, options)));

/** To find the list price of a model takes 60 µs. */
const MODELS_PER_TURN = 100;

async function offerOf(provider: ListedProvider, { now, ask, last }: OfferOptions): Promise<ProviderOffers> {
  const known = KNOWN_PROVIDERS[provider.use];
  const { names, problem, models } = await namesOf(provider, known, { ask, last });
  const offered: OfferedModel[] = [];
  const withheld: WithheldModel[] = [];
  const seen = new Set<string>();
  for (const model of models) {
    const name = `${provider.prefix}/${model.id}`;
    if (seen.has(name) || !isWanted(provider, model.id)) continue;
    seen.add(name);
    if (seen.size % MODELS_PER_TURN === 0) await ownTurn();
    const offer = offerModel(provider, known, model, { name, now });
    if ('why' in offer) withheld.push(offer);
    else offered.push(offer);
  }
  for (const one of [...provider.only, ...Object.keys(provider.models)])
    if (names === 'provider' && !one.includes('*') && !models.some(({ id }) => id === one))
      withheld.push({ name: `${provider.prefix}/${one}`, why: `${known.name} does not list it for this key` });
  const byName = (one: { readonly name: string }, other: { readonly name: string }) => (one.name < other.name ? -1 : 1);
  return { provider, names, problem, offered: offered.sort(byName), withheld: withheld.sort(byName) };
}

const isWanted = ({ only, except }: ListedProvider, id: string): boolean =>
  (only.length === 0 || only.some((one) => fits(one, id))) && !except.some((one) => fits(one, id));

/** Whether a name fits a pattern, in which `*` stands for any text. Linear, because the name is a stranger's. */
function fits(pattern: string, name: string): boolean {
  const [first = '', ...others] = pattern.split('*');
  const last = others.pop();
  if (last === undefined) return name === pattern;
  if (!name.startsWith(first)) return false;
  let at = first.length;
  for (const part of others) {
    const index = name.indexOf(part, at);
    if (index === -1) return false;
    at = index + part.length;
  }
  return name.length - last.length >= at && name.endsWith(last);
}

const nameOnly = (id: string): ListedModel => ({
  id,
  contextLength: null,
  maxOutputTokens: null,
  inputModalities: null,
  prices: null,
  unfit: null,
});

/** The models that a provider may have, and where their names are from. */
async function namesOf(
  provider: ListedProvider,
  known: KnownProvider,
  { ask, last }: Pick<OfferOptions, 'ask' | 'last'>,
): Promise<Pick<ProviderOffers, 'names' | 'problem'> & { readonly models: readonly ListedModel[] }> {
  if (known.lists === null) return { names: 'file', problem: null, models: provider.only.map(nameOnly) };
  // A list belongs to a key and an address.
  const source = `${provider.use} ${provider.url} ${provider.keyVariable}`;
  const previous = last.get(provider.path);
  const before = previous?.source === source ? previous.models : null;
  let problem: string | null = null;
  if (ask)
    try {
      const models = await listModels(provider);
      last.set(provider.path, { source, models });
      return { names: 'provider', problem: null, models };
    } catch (error) {
      problem = error instanceof Error ? error.message : String(error);
      if (error instanceof KeyRefused && before === null) return { names: 'none', problem, models: [] };
    }
  if (before !== null) return { names: 'provider', problem, models: before };
  const names = [...provider.only.filter((one) => !one.includes('*')), ...Object.keys(provider.models)];
  const priced = known.prices === null ? [] : (findProvider({ providerId: known.prices })?.models ?? []);
  const ids = [
    ...names,
    ...priced.filter(({ id, deprecated }) => !deprecated && isName(provider, id)).map(({ id }) => id),
  ];
  return { names: 'prices', problem, models: [...new Set(ids)].map(nameOnly) };
}

/**
 * Whether an entry of the list of prices is called as a model of the provider is. Some stand for the beginnings of
 * names, for the models that customers trained, or for variants that are OpenRouter's alone.
 */
const isName = ({ use }: ListedProvider, id: string): boolean =>
  !/^ft:|-$/.test(id) && (use === 'openrouter' ? id.includes('/') : !id.includes(':'));

/** The block of a model, or why it is not offered. */
function offerModel(
  provider: ListedProvider,
  known: KnownProvider,
  model: ListedModel,
  { name, now }: { readonly name: string; readonly now: number },
): OfferedModel | WithheldModel {
  const withhold = (why: string): WithheldModel => ({ name, why });
  const { use, markupBps } = provider;
  const { priced_as: as, ...settings } = Object.hasOwn(provider.models, model.id) ? provider.models[model.id]! : {};
  const pricedAs = typeof as === 'string' ? as : model.id;
  // A number that no block may have would refuse the whole file.
  if (settings['context_length'] === undefined && (model.contextLength ?? 0) > TOKENS_MAX)
    return withhold(
      `its provider lists a context of ${model.contextLength} tokens, and at most ${TOKENS_MAX} are possible: give it a context_length`,
    );
  const fault = serviceNameFault(name);
  if (fault !== null) return withhold(`its name ${fault}`);
  const listed =
    known.prices === null ? null : listPrice(known.prices, pricedAs, { now, markupBps, searches: known.searches });
  const own = settings['pricing'] ?? (listed?.kind === 'priced' ? undefined : provider.pricing);
  const isOwn = own !== undefined && own !== null;
  const takesSound = listed?.kind === 'priced' && listed.pricing['audio'] !== undefined;
  const why = isOwn ? null : (model.unfit ?? unfit(use, pricedAs, takesSound));
  if (why !== null) return withhold(why);
  if (!isOwn && listed === null)
    return withhold(
      `${known.name} has no list prices: give its models one, such as pricing = { prompt = 0, completion = 0 }`,
    );
  if (!isOwn && listed?.kind === 'unpriced') return withhold(listed.why);

  const priced = listed?.kind === 'priced' ? listed : null;
  const raised =
    priced === null || model.prices === null ? priced?.pricing : dearer(priced.pricing, model.prices, markupBps);
  const mayKeep = settings['zdr'] !== true;
  const tiers = isOwn ? {} : tiersOf(provider, known, { pricedAs, pricing: raised!, mayKeep });
  const block = blockOf(provider, model, {
    name,
    pricedAs,
    priced,
    cost: costOf(provider, known, { pricedAs, priced, now }),
    settings,
    pricing: (isOwn ? own : raised) as Pricing,
    tiers,
  });
  const source: PriceSource = isOwn
    ? { kind: 'file' }
    : { kind: 'list', pricedAs: priced!.pricedAs, isRaised: changed(raised!, priced!.pricing) };
  return { path: `${provider.path}.models.${model.id}`, block, name: block.name, source };
}

/** The cost for the operator: the list price without the markup. null if the list does not have it. */
function costOf(
  provider: ListedProvider,
  known: KnownProvider,
  { pricedAs, priced, now }: { readonly pricedAs: string; readonly priced: PricedModel | null; readonly now: number },
): Readonly<Record<string, unknown>> | null {
  if (priced === null) return null;
  const { markupBps } = provider;
  const list =
    markupBps === 0 ? priced : listPrice(known.prices!, pricedAs, { now, markupBps: 0, searches: known.searches });
  // The cost of sound by the minute is no part of the comparison, which is about tokens.
  if (list.kind !== 'priced' || list.pricing['per_minute'] !== undefined) return null;
  const tiers = tiersOf(provider, known, { pricedAs, pricing: list.pricing, mayKeep: true });
  return Object.keys(tiers).length === 0 ? list.pricing : { ...list.pricing, service_tiers: tiers };
}

interface Tiered {
  readonly pricedAs: string;
  readonly pricing: Pricing;
  /** A provider keeps the requests of a batch. */
  readonly mayKeep: boolean;
}

/** Prices of the service tiers that a model has at its provider's own address, by their names. */
function tiersOf(
  { url }: ListedProvider,
  { base, tiers = [] }: KnownProvider,
  { pricedAs, pricing, mayKeep }: Tiered,
): Readonly<Record<string, Pricing>> {
  const prices: Record<string, Pricing> = {};
  if (url !== base) return prices;
  for (const known of tiers) {
    if (!known.models.test(pricedAs) || (known.tier === 'batch' && !mayKeep)) continue;
    const price = tierPrice(pricing, known);
    if (price !== null) prices[known.tier] ??= price;
  }
  return prices;
}

type PricedModel = Extract<ListPrice, { readonly kind: 'priced' }>;

interface Decided {
  readonly name: string;
  readonly pricedAs: string;
  readonly priced: PricedModel | null;
  readonly pricing: Pricing;
  /** The cost for the operator; null if it is unknown. */
  readonly cost: Readonly<Record<string, unknown>> | null;
  readonly tiers: Readonly<Record<string, Pricing>>;
  /** Those of the file for this model. */
  readonly settings: Readonly<Record<string, unknown>>;
}

/** The block of a model: what its provider and the list of prices say, and the settings of the file over it. */
function blockOf(
  provider: ListedProvider,
  model: ListedModel,
  { name, pricedAs, priced, pricing, cost, tiers, settings }: Decided,
) {
  const { use, providerName } = provider;
  const known = KNOWN_PROVIDERS[use];
  const set = settings['context_length'];
  const contextLength = typeof set === 'number' ? set : (model.contextLength ?? priced?.contextLength ?? null);
  const { params: more, ...rest } = settings;
  const makes: Product = priced?.makes ?? (/embed|minilm|bge-/i.test(model.id) ? 'embeddings' : 'text');
  const isTimed = pricing['per_minute'] !== undefined;
  return {
    name,
    ...(providerName === null ? {} : { provider_name: providerName }),
    display_name: `${known.name}: ${model.id}`,
    ...(contextLength === null ? {} : { context_length: contextLength }),
    ...kindsOf(makes, use, model, { pricedAs, priced }),
    ...(cost === null ? {} : { cost }),
    ...(known.stops === undefined ? {} : { stops: known.stops }),
    ...rest,
    pricing: Object.keys(tiers).length === 0 ? pricing : { ...pricing, service_tiers: tiers },
    params: {
      model: model.id,
      ...('batch' in tiers ? { batches: true } : {}),
      ...(makes === 'embeddings' || isTimed || 'max_output_tokens' in settings
        ? {}
        : { max_output_tokens: outputOf(model, pricedAs, contextLength) }),
      ...(makes === 'text' ? chatParams(use, pricedAs) : {}),
      forward: known.forward ?? [],
      ...(more as Readonly<Record<string, unknown>> | undefined),
      ...targetOf(provider, known),
    },
  };
}

function kindsOf(
  makes: Product,
  use: KnownProviderName,
  { inputModalities }: ListedModel,
  { pricedAs, priced }: Pick<Decided, 'pricedAs' | 'priced'>,
) {
  if (makes === 'embeddings' || makes === 'speech') return { output_modalities: [makes] };
  if (makes === 'transcription') return { input_modalities: ['audio'], output_modalities: [makes] };
  const sound = priced?.pricing['audio'] === undefined ? [] : ['audio'];
  return {
    input_modalities: [...new Set([...(inputModalities ?? inputKinds(use, pricedAs)), ...sound])],
    ...(priced?.pricing['audio_output'] === undefined ? {} : { output_modalities: ['text', 'audio'] }),
  };
}

/** A limit that a block may have: at most the context that is assumed if none is known. */
const outputOf = ({ maxOutputTokens }: ListedModel, pricedAs: string, contextLength: number | null): number =>
  Math.min(maxOutputTokens ?? outputMax(pricedAs, contextLength), contextLength ?? 65_536);

function chatParams(use: KnownProviderName, pricedAs: string) {
  const { wires, cap, strict } = KNOWN_PROVIDERS[use];
  return {
    image_tokens_max: imageTokensMax({ upstreamModel: pricedAs }, true),
    ...(wires === undefined ? {} : { wires }),
    ...(cap === undefined ? {} : { cap }),
    ...(strict === undefined ? {} : { strict_fields: strict }),
  };
}

const changed = (one: Pricing, other: Pricing): boolean => JSON.stringify(one) !== JSON.stringify(other);

/** The address or the package of a model. The key is named, and read when the block is read. */
function targetOf({ url, keyVariable, sdkSettings }: ListedProvider, { sdk }: KnownProvider) {
  const key = keyVariable === null ? null : `std::env::${keyVariable}`;
  if (sdk === undefined) return { api_base: url, ...(key === null ? {} : { api_key: key }) };
  return { sdk, sdk_settings: sdkSettings, ...(key === null ? {} : { sdk_secrets: { apiKey: key } }) };
}
