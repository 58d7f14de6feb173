import { dropOldest, GatewayError } from '#wire';
import { createFreshPage, tagPage, type Catalog, type HealthSources, type TaggedPage } from '#gateway';
import { viewAnthropicModel, viewAnthropicModels, type AnthropicPage } from './anthropic-models.ts';
import { modelOfAlias } from '../translated/model-alias.ts';
import { viewEmbeddingModels, viewImageEndpoints, viewImageModels, viewVideoModels } from './media-models.ts';
import { viewEntry, viewListing, type ListingOf } from './models-listing.ts';
import { viewEndpoints } from './model-endpoints.ts';

export interface ModelPagesDeps extends HealthSources {
  readonly catalog: Pick<Catalog, 'offers' | 'resolve' | 'version' | 'knows'>;
  readonly now: () => number;
}

/** Query of a listing. */
export interface ListingQuery {
  readonly type?: NonNullable<ListingOf['type']>;
  readonly filter?: NonNullable<ListingOf['filter']>;
  readonly offset?: number;
  readonly limit?: number;
  /** Kinds of output, separated by commas, or `all`. Not together with `type`. */
  readonly output_modalities?: string;
}

/** Pages about models, each with its tag. Pages of one model throw GatewayError if nobody offers the model. */
export interface ModelPages {
  list(query: ListingQuery): TaggedPage;
  /** The list of a key: only what is in `services`; null for a key that may use all. */
  listOfKey(query: ListingQuery, services: readonly string[] | null): TaggedPage;
  /** The list in the shape of Anthropic's API. */
  anthropicList(query: AnthropicPage): TaggedPage;
  /** How many entries `data` of a listing has. */
  count(query: Pick<ListingQuery, 'type' | 'filter' | 'output_modalities'>): unknown;
  entry(name: string): TaggedPage;
  /** The entry as the member `data` of an object. */
  wrappedEntry(name: string): TaggedPage;
  anthropicEntry(name: string): TaggedPage;
  /** The offers of a model. */
  endpoints(name: string): TaggedPage;
  /** The lists of other kinds of models, in the shape of OpenRouter's API. */
  listOf(kind: 'image' | 'video' | 'embedding'): TaggedPage;
  imageEndpoints(name: string): TaggedPage;
}

/** Most listings in the cache: enough for the usual queries and some pages. */
const LISTINGS_MAX = 32;

const LISTS = { image: viewImageModels, video: viewVideoModels, embedding: viewEmbeddingModels } as const;

const LIST_OF_KEY = '/api/v1/models/user';

/** Throws GatewayError `invalid_request` for two selections that exclude each other. */
function listingOf({ type, filter, offset, limit, output_modalities: modalities }: ListingQuery) {
  if (modalities !== undefined && type !== undefined)
    throw new GatewayError('invalid_request', 'Send only one of type and output_modalities', {
      param: 'output_modalities',
    });
  return {
    type: type ?? null,
    filter: filter ?? null,
    offset: offset ?? 0,
    limit: limit ?? null,
    ...(modalities === undefined ? {} : { modalities: modalitiesOf(modalities) }),
  };
}

/** The same for every spelling and order, so that the cache has one page for them. */
function modalitiesOf(text: string): readonly string[] | 'all' {
  const kinds = new Set(text.split(','));
  // OpenAI-compatible servers write the kind of output of such a model in either way.
  if (kinds.has('embeddings')) kinds.add('embedding');
  return kinds.has('all') ? 'all' : [...kinds].toSorted();
}

export function createModelPages({ catalog, now, ...healthSources }: ModelPagesDeps): ModelPages {
  const listings = new Map<string, () => TaggedPage>();
  const isModel = (name: string) => catalog.knows(name, 'model');
  const offersOf = (name: string) => catalog.resolve(name, 'model').offers;

  /** The offers of a model of any kind. Most are chat models, and an unknown name is told as one. */
  const offersOfAny = (name: string) => {
    const kind = (['model', 'image', 'video'] as const).find((one) => catalog.knows(name, one)) ?? 'model';
    return catalog.resolve(name, kind).offers;
  };

  /** A page is serialised once per set of offers, because listings are requested far more often than offers change. */
  function kept(key: string, make: () => unknown): TaggedPage {
    const page = listings.get(key) ?? createFreshPage(make, { version: catalog.version, now, freshMs: Infinity });
    listings.delete(key);
    listings.set(key, page);
    dropOldest(listings, LISTINGS_MAX);
    return page();
  }

  return {
    list(query) {
      const of = listingOf(query);
      return kept(JSON.stringify(Object.values(of)), () => viewListing(catalog, { ...of, services: null }));
    },
    listOfKey(query, services) {
      const of = { ...listingOf(query), path: LIST_OF_KEY };
      const make = () => viewListing(catalog, { ...of, services });
      return services === null ? kept(JSON.stringify(Object.values(of)), make) : tagPage(make());
    },
    anthropicList(query) {
      const make = () => viewAnthropicModels(catalog, query);
      const isFirst = query.after_id === undefined && query.before_id === undefined;
      return isFirst ? kept(`anthropic ${query.limit ?? ''}`, make) : tagPage(make());
    },
    count: (query) => viewListing(catalog, { ...listingOf(query), limit: 0, services: null })['total_count'],
    entry: (name) => tagPage(viewEntry(offersOfAny(name))),
    wrappedEntry: (name) => tagPage({ data: viewEntry(offersOfAny(name)) }),
    anthropicEntry: (name) => tagPage(viewAnthropicModel(offersOf(modelOfAlias(name, isModel)), isModel)),
    endpoints: (name) => tagPage(viewEndpoints(offersOfAny(name), healthSources)),
    listOf: (kind) => kept(kind, () => LISTS[kind](catalog)),
    imageEndpoints: (name) => tagPage(viewImageEndpoints(catalog.resolve(name, 'image').offers)),
  };
}
