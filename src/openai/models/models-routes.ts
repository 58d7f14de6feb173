import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify';
import {
  createFreshPage,
  sendPage,
  tagPage,
  type Catalog,
  type Pipeline,
  type Standings,
  type TaggedPage,
} from '#gateway';
import { requireAdmission } from '#auth';
import { viewAnthropicModel, viewAnthropicModels, type AnthropicPage } from './anthropic-models.ts';
import { FILTERS, TYPES, viewListing, type ListingOf } from './models-listing.ts';
import { countSchema, endpointsSchema, entrySchema, listingSchema, modelSchema } from './models-schema.ts';
import { viewEndpoints, viewModel } from './models-view.ts';

export interface ModelsDeps extends Standings {
  readonly catalog: Pick<Catalog, 'offers' | 'resolve' | 'version'>;
  readonly admit: Pipeline['admit'];
  readonly now: () => number;
}

interface ListingQuery {
  readonly type?: (typeof TYPES)[number];
  readonly filter?: (typeof FILTERS)[number];
  readonly offset?: number;
  readonly limit?: number;
}

const querySchema = {
  type: 'object',
  properties: {
    type: {
      type: 'string',
      enum: TYPES,
      description:
        'Which kind of model: the lists of other kinds stay empty, and so do `agents` and `tools`. Default: chat models, agents and tools.',
    },
    filter: {
      type: 'string',
      enum: FILTERS,
      description: '`models` leaves agents and tools out; `agents` leaves models out.',
    },
    offset: { type: 'integer', minimum: 0, maximum: 1_000_000, description: 'Entries of `data` to skip. Default 0.' },
    limit: { type: 'integer', minimum: 1, maximum: 1_000, description: 'Entries of `data` at most. Default: all.' },
    after_id: {
      type: 'string',
      maxLength: 256,
      description: 'With the header `anthropic-version`: the page after this model.',
    },
    before_id: {
      type: 'string',
      maxLength: 256,
      description: 'With the header `anthropic-version`: the page before this model.',
    },
  },
} as const;

const HEADERS = {
  type: 'object',
  properties: {
    'anthropic-version': {
      type: 'string',
      description: "With this header the answer is in the shape of Anthropic's API.",
    },
  },
} as const;

/** Listings that are kept: as many as there are usual questions, and some pages. */
const LISTINGS_MAX = 32;

/**
 * `GET /models`, one model, who offers it, and what a key may call. All but the last are public. Register it under
 * `/api/v1`.
 */
export function modelsRoutes({ catalog, admit, now, ...standings }: ModelsDeps): FastifyPluginAsync {
  const listings = new Map<string, () => TaggedPage>();

  /** Serialised once per set of offers: listings are asked for far more often than offers change. */
  function kept(key: string, make: () => unknown): TaggedPage {
    const page = listings.get(key) ?? createFreshPage(make, { version: catalog.version, now, freshMs: Infinity });
    listings.delete(key);
    listings.set(key, page);
    if (listings.size > LISTINGS_MAX) listings.delete(listings.keys().next().value!);
    return page();
  }

  function listing(query: ListingQuery, services: readonly string[] | null = null): TaggedPage {
    const { type = null, filter = null, offset = 0, limit = null } = query;
    const of: ListingOf = { type, filter, offset, limit, services };
    const make = () => viewListing(catalog, of);
    return services === null ? kept(JSON.stringify([type, filter, offset, limit]), make) : tagPage(make());
  }

  return async (app) => {
    app.get<{ Querystring: ListingQuery & AnthropicPage }>(
      '/models',
      {
        schema: {
          summary: 'List models',
          operationId: 'listModels',
          description:
            'Everything that can be called, with providers and prices, in one answer. No credential is needed. ' +
            'As a chat model an agent of `agents` is called `a2a/<name>`, a tool of a service in `tools` is called `mcp/<name>/<tool>`.',
          tags: ['Models'],
          security: [],
          headers: HEADERS,
          querystring: querySchema,
          response: { 200: listingSchema },
        },
      },
      (request, reply) => {
        void reply.header('vary', 'anthropic-version');
        if (!isAnthropic(request)) return sendPage(request, reply, listing(request.query));
        const { after_id, before_id, limit } = request.query;
        const asked = {
          ...(after_id === undefined ? {} : { after_id }),
          ...(before_id === undefined ? {} : { before_id }),
        };
        const make = () => viewAnthropicModels(catalog, { ...asked, ...(limit === undefined ? {} : { limit }) });
        return sendPage(
          request,
          reply,
          after_id === undefined && before_id === undefined ? kept(`anthropic ${limit ?? ''}`, make) : tagPage(make()),
        );
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
            properties: { type: querySchema.properties.type, filter: querySchema.properties.filter },
          },
          response: { 200: countSchema },
        },
      },
      ({ query: { type = null, filter = null } }) => {
        const all = viewListing(catalog, { type, filter, offset: 0, limit: 0, services: null });
        return { data: { count: all['total_count'] } };
      },
    );

    await app.register(async (own) => {
      const admissionOf = requireAdmission(own, admit);
      own.get<{ Querystring: ListingQuery }>(
        '/models/user',
        {
          schema: {
            summary: 'List what your key may call',
            operationId: 'listModelsOfUser',
            description: 'The same list, without what the key in use may not call.',
            tags: ['Models'],
            querystring: querySchema,
            response: { 200: listingSchema },
          },
        },
        (request, reply) => {
          const { key } = admissionOf(request).caller;
          return sendPage(request, reply, listing(request.query, key?.allowedServices ?? null));
        },
      );
    });

    app.get<{ Params: { author: string; slug: string } }>(
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
      (request, reply) =>
        sendPage(
          request,
          reply,
          tagPage({
            data: viewModel(catalog.resolve(`${request.params.author}/${request.params.slug}`, 'model').offers),
          }),
        ),
    );

    // A name of two parts, as most have, has its own route, so that it is described.
    app.get<{ Params: { author: string; slug: string } }>(
      '/models/:author/:slug/endpoints',
      {
        schema: {
          summary: 'Show who offers a model',
          operationId: 'listEndpoints',
          description:
            'Every provider of the model, with price, health, latency and throughput. No credential is needed.',
          tags: ['Models'],
          security: [],
          params: partsParams,
          response: { 200: endpointsSchema },
        },
      },
      (request, reply) => endpoints(reply, request, `${request.params.author}/${request.params.slug}`),
    );

    // A name has one slash or more (`<author>/<slug>`), or none; encoded or not.
    app.get<{ Params: { '*': string } }>(
      '/models/*',
      {
        schema: {
          summary: 'Show an entry of the list of models',
          operationId: 'getModelEntry',
          description:
            'The entry as it is in the list. With `/endpoints` after the name: who offers the model. No credential is needed.',
          tags: ['Models'],
          security: [],
          headers: HEADERS,
          params: nameParams,
          response: { 200: entrySchema },
        },
      },
      (request, reply) => {
        const path = request.params['*'];
        if (path.endsWith(ENDPOINTS)) return endpoints(reply, request, path.slice(0, -ENDPOINTS.length));
        const { offers } = catalog.resolve(path, 'model');
        void reply.header('vary', 'anthropic-version');
        return sendPage(request, reply, tagPage(isAnthropic(request) ? viewAnthropicModel(offers) : viewModel(offers)));
      },
    );
  };

  function endpoints(reply: FastifyReply, request: FastifyRequest, name: string): FastifyReply {
    return sendPage(request, reply, tagPage(viewEndpoints(catalog.resolve(name, 'model').offers, standings)));
  }
}

const nameParams = {
  type: 'object',
  properties: { '*': { type: 'string', description: 'The name of the model' } },
} as const;
const partsParams = {
  type: 'object',
  properties: {
    author: { type: 'string', description: 'The name of the model up to its slash' },
    slug: { type: 'string', description: 'The rest of the name' },
  },
} as const;
const ENDPOINTS = '/endpoints';

const isAnthropic = ({ headers }: FastifyRequest): boolean => headers['anthropic-version'] !== undefined;
