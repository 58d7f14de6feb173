import type { FastifyInstance, FastifyPluginAsync, FastifyRequest } from 'fastify';
import { dialectOf, ListedPages, type PageMembers, sendPage, tagPage, type TaggedPage } from '#http';
import { offersWithin } from '#accounts';
import { MODELS_ERROR } from '#http/error-schemas';
import { GatewayError } from '#errors';
import type { Pipeline } from '#call';
import type { Catalog, HealthSources } from '#catalog';
import { type Asker, type AskerOf, createAskerOf, requireAdmission } from '#auth';
import {
  type AnthropicPage,
  viewAnthropicModel,
  viewAnthropicModels,
  viewEntry,
  viewListing,
  type ListingOf,
  viewEndpoints,
} from './models-listing.ts';
import {
  headersSchema,
  LIST_VARIES_BY,
  nameParams,
  partsParams,
  querySchema,
  countSchema,
  endpointsSchema,
  entrySchema,
  listingSchema,
  modelSchema,
} from './models-schema.ts';
import {
  embeddingModelsSchema,
  imageEndpointsSchema,
  imageModelsSchema,
  videoModelsSchema,
  viewEmbeddingModels,
  viewImageEndpoints,
  viewImageModels,
  viewVideoModels,
} from './media-models.ts';
import { modelOfAlias } from '../translated/service-names.ts';

interface ModelsDeps extends ModelPagesDeps, Pick<Pipeline, 'admit' | 'visitor'> {}

/**
 * `GET /models`, the pages of one model and its providers, and the list of what a key may call. All except that list
 * are public; with a key that may not call everything, lists have only what it may call. Register it under `/api/v1`.
 */
export function modelsRoutes({ admit, visitor, ...deps }: ModelsDeps): FastifyPluginAsync {
  const pages = createModelPages(deps);
  const askerOf = createAskerOf(visitor);
  return async (app) => {
    listRoutes(app, pages, askerOf);
    kindRoutes(app, pages, askerOf);
    await app.register(async (own) => listOfKeyRoute(own, pages, admit));
    entryRoutes(app, pages);
  };
}

function listRoutes(app: FastifyInstance, pages: ModelPages, askerOf: AskerOf): void {
  app.get<{ Querystring: ListingQuery & AnthropicPage }>(
    '/models',
    {
      schema: {
        summary: 'List models',
        operationId: 'listModels',
        description:
          'Everything that can be called, with providers and prices, in one answer. No credential is needed; with a key that may not call everything, the list has only what it may call. ' +
          '`data` has chat models; `output_modalities` selects others. Below `/v1` it has the models of all kinds, as in OpenAI’s API. ' +
          'As a chat model an agent of `agents` is called `a2a/<name>`, a tool of a service in `tools` is called `mcp/<name>/<tool>`.',
        tags: ['Models'],
        security: [],
        headers: headersSchema,
        querystring: querySchema,
        response: { 200: listingSchema, default: MODELS_ERROR },
      },
      config: { clientsAppend: true },
    },
    async (request, reply) => {
      void reply.header('vary', LIST_VARIES_BY);
      const asker = await askerOf(request);
      const page = await (isAnthropic(request)
        ? pages.anthropicList(request.query, asker)
        : pages.list(listAsked(request), asker));
      return sendPage(request, reply, page);
    },
  );

  app.get<{ Querystring: ListingQuery }>(
    '/models/count',
    {
      schema: {
        summary: 'Count models',
        operationId: 'countModels',
        description: 'How many entries `data` of the list has. No credential is needed.',
        tags: ['Models'],
        security: [],
        querystring: {
          type: 'object',
          additionalProperties: true,
          properties: {
            type: querySchema.properties.type,
            filter: querySchema.properties.filter,
            output_modalities: querySchema.properties.output_modalities,
          },
        },
        response: { 200: countSchema },
      },
    },
    async (request) => ({ data: { count: pages.count(request.query, await askerOf(request)) } }),
  );
}

/** The lists of models of one kind, in the shape of OpenRouter's API. */
function kindRoutes(app: FastifyInstance, pages: ModelPages, askerOf: AskerOf): void {
  const described = { tags: ['Models'], security: [] };
  app.get(
    '/images/models',
    {
      schema: {
        ...described,
        summary: 'List image models in the shape of OpenRouter’s API',
        operationId: 'listImageModels',
        description: 'Image models with what they take. No credential is needed.',
        response: { 200: imageModelsSchema },
      },
    },
    async (request, reply) => sendPage(request, reply, await pages.listOf('image', await askerOf(request))),
  );
  app.get<{ Params: NameParts }>(
    '/images/models/:author/:slug/endpoints',
    {
      schema: {
        ...described,
        summary: 'List the providers of an image model',
        operationId: 'listImageEndpoints',
        description: 'Every provider of the model with its prices, in the shape of OpenRouter’s API.',
        params: partsParams,
        response: { 200: imageEndpointsSchema },
      },
    },
    (request, reply) => sendPage(request, reply, pages.imageEndpoints(nameOf(request.params))),
  );
  app.get(
    '/videos/models',
    {
      schema: {
        ...described,
        summary: 'List video models in the shape of OpenRouter’s API',
        operationId: 'listVideoModels',
        description: 'Video models with what they take and cost. No credential is needed.',
        response: { 200: videoModelsSchema },
      },
    },
    async (request, reply) => sendPage(request, reply, await pages.listOf('video', await askerOf(request))),
  );
  app.get(
    '/embeddings/models',
    {
      schema: {
        ...described,
        summary: 'List embedding models',
        operationId: 'listEmbeddingModels',
        description: 'The entries of embedding models as they are in the list of models. No credential is needed.',
        response: { 200: embeddingModelsSchema },
      },
    },
    async (request, reply) => sendPage(request, reply, await pages.listOf('embedding', await askerOf(request))),
  );
}

function listOfKeyRoute(app: FastifyInstance, pages: ModelPages, admit: Pipeline['admit']): void {
  const admissionOf = requireAdmission(app, admit);
  app.get<{ Querystring: ListingQuery }>(
    '/models/user',
    {
      schema: {
        summary: 'List what your key may call',
        operationId: 'listModelsOfUser',
        description: 'The same list, only with what this key may call.',
        tags: ['Models'],
        querystring: querySchema,
        response: { 200: listingSchema },
      },
    },
    async (request, reply) => {
      const { account, key } = admissionOf(request).caller;
      const page = await pages.listOfKey(request.query, { name: account, access: key?.access ?? null });
      return sendPage(request, reply, page);
    },
  );
}

function entryRoutes(app: FastifyInstance, pages: ModelPages): void {
  app.get<{ Params: NameParts }>(
    '/model/:author/:slug',
    {
      schema: {
        summary: 'Show a model',
        operationId: 'getModel',
        description: 'The entry of the list as `data`. No credential is needed.',
        tags: ['Models'],
        security: [],
        params: partsParams,
        response: { 200: { type: 'object', required: ['data'], properties: { data: modelSchema } } },
      },
    },
    (request, reply) => sendPage(request, reply, pages.wrappedEntry(nameOf(request.params))),
  );

  // Most names have two parts. They have their own route, so that the reference page describes it.
  app.get<{ Params: NameParts }>(
    '/models/:author/:slug/endpoints',
    {
      schema: {
        summary: 'List the providers of a model',
        operationId: 'listEndpoints',
        description:
          'Every provider of the model, with price, health, latency and throughput. No credential is needed.',
        tags: ['Models'],
        security: [],
        params: partsParams,
        response: { 200: endpointsSchema },
      },
    },
    (request, reply) => sendPage(request, reply, pages.endpoints(nameOf(request.params))),
  );

  // A name may have no slash, one (`<author>/<slug>`) or more, encoded or not.
  app.get<{ Params: { '*': string } }>(
    '/models/*',
    {
      schema: {
        summary: 'Show an entry of the list of models',
        operationId: 'getModelEntry',
        description:
          'The entry as it is in the list. With `/endpoints` after the name: the providers of the model. No credential is needed.',
        tags: ['Models'],
        security: [],
        headers: headersSchema,
        params: nameParams,
        response: { 200: entrySchema, default: MODELS_ERROR },
      },
    },
    (request, reply) => {
      const path = request.params['*'];
      if (path.endsWith(ENDPOINTS)) return sendPage(request, reply, pages.endpoints(path.slice(0, -ENDPOINTS.length)));
      const page = isAnthropic(request) ? pages.anthropicEntry(path) : pages.entry(path);
      void reply.header('vary', LIST_VARIES_BY);
      return sendPage(request, reply, page);
    },
  );
}

/** OpenAI's API lists the models of all kinds in one list, and has no other. */
function listAsked(request: FastifyRequest<{ Querystring: ListingQuery }>): ListingQuery {
  const { query } = request;
  const isPlain = query.type === undefined && query.filter === undefined && query.output_modalities === undefined;
  return isPlain && dialectOf(request) === 'openai' ? { ...query, output_modalities: 'all' } : query;
}

interface NameParts {
  readonly author: string;
  readonly slug: string;
}

const nameOf = ({ author, slug }: NameParts): string => `${author}/${slug}`;
const ENDPOINTS = '/endpoints';

const isAnthropic = ({ headers }: FastifyRequest): boolean => headers['anthropic-version'] !== undefined;

interface ModelPagesDeps extends HealthSources {
  readonly catalog: Pick<Catalog, 'offers' | 'resolve' | 'version' | 'knows'>;
}

interface ListingQuery {
  readonly type?: NonNullable<ListingOf['type']>;
  readonly filter?: NonNullable<ListingOf['filter']>;
  readonly offset?: number;
  readonly limit?: number;
  /** Kinds of output, separated by commas, or `all`. Not together with `type`. */
  readonly output_modalities?: string;
  /** Codex's. */
  readonly client_version?: string;
}

/**
 * Pages about models, each with its tag. Lists are made in turns with those of others. Pages of one model throw
 * GatewayError if nobody offers the model.
 */
interface ModelPages {
  list(query: ListingQuery, asker: Asker): Promise<TaggedPage>;
  /** The same at the address for keys. */
  listOfKey(query: ListingQuery, asker: Asker): Promise<TaggedPage>;
  anthropicList(query: AnthropicPage, asker: Asker): Promise<TaggedPage>;
  count(query: Pick<ListingQuery, 'type' | 'filter' | 'output_modalities'>, asker: Asker): unknown;
  entry(name: string): TaggedPage;
  /** The entry as the member `data` of an object. */
  wrappedEntry(name: string): TaggedPage;
  anthropicEntry(name: string): TaggedPage;
  endpoints(name: string): TaggedPage;
  listOf(kind: 'image' | 'video' | 'embedding', asker: Asker): Promise<TaggedPage>;
  imageEndpoints(name: string): TaggedPage;
}

const LISTS = { image: viewImageModels, video: viewVideoModels, embedding: viewEmbeddingModels } as const;

const LIST_OF_KEY = '/api/v1/models/user';

/** Throws GatewayError `invalid_request` for two selections that exclude each other. */
function listingOf({ type, filter, offset, limit, output_modalities: modalities, client_version }: ListingQuery) {
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
    ...(client_version === undefined ? {} : { forCodex: true }),
  };
}

/**
 * The kinds of output that a query names. Every spelling and order gives the same list, so that the cache has one page
 * for all of them.
 */
function modalitiesOf(text: string): readonly string[] | 'all' {
  const kinds = new Set(text.split(','));
  // OpenAI-compatible servers write the kind of output of such a model in either way.
  if (kinds.has('embeddings')) kinds.add('embedding');
  return kinds.has('all') ? 'all' : [...kinds].toSorted();
}

function createModelPages({ catalog, ...healthSources }: ModelPagesDeps): ModelPages {
  const lists = new ListedPages(catalog.version);
  const isModel = (name: string) => catalog.knows(name, 'model');
  const offersOf = (name: string) => catalog.resolve(name, 'model').offers;

  /** The offers of a model of any kind. Most are chat models, and an unknown name is told as one. */
  const offersOfAny = (name: string) => {
    const kind = (['model', 'image', 'video'] as const).find((one) => catalog.knows(name, one)) ?? 'model';
    return catalog.resolve(name, kind).offers;
  };

  /** A list of what the asker may call. `key`: of the page that everybody may get; null if nobody else asks for it. */
  const pageFor = (
    { name, access }: Asker,
    key: string | null,
    view: (permitted: Pick<Catalog, 'offers'>) => PageMembers,
  ): Promise<TaggedPage> => {
    const make = () => view(offersWithin(catalog, access));
    return key === null || access !== null ? lists.once(name, make) : lists.page(key, name, make);
  };
  const listingPage = (listing: ListingOf, asker: Asker): Promise<TaggedPage> =>
    pageFor(asker, JSON.stringify(Object.values(listing)), (permitted) => viewListing(permitted, listing));

  return {
    list: async (query, asker) => listingPage(listingOf(query), asker),
    listOfKey: async (query, asker) => listingPage({ ...listingOf(query), path: LIST_OF_KEY }, asker),
    anthropicList(query, asker) {
      const isFirst = query.after_id === undefined && query.before_id === undefined;
      const key = isFirst ? `anthropic ${query.limit ?? ''}` : null;
      return pageFor(asker, key, ({ offers }) => viewAnthropicModels({ ...catalog, offers }, query));
    },
    count: (query, { access }) =>
      viewListing(offersWithin(catalog, access), { ...listingOf(query), limit: 0 }).total_count,
    entry: (name) => tagPage(viewEntry(offersOfAny(name))),
    wrappedEntry: (name) => tagPage({ data: viewEntry(offersOfAny(name)) }),
    anthropicEntry: (name) => tagPage(viewAnthropicModel(offersOf(modelOfAlias(name, isModel)), isModel)),
    endpoints: (name) => tagPage(viewEndpoints(offersOfAny(name), healthSources)),
    listOf: (kind, asker) => pageFor(asker, kind, LISTS[kind]),
    imageEndpoints: (name) => tagPage(viewImageEndpoints(catalog.resolve(name, 'image').offers)),
  };
}
