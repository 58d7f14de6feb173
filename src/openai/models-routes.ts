import { createHash } from 'node:crypto';
import type { FastifyPluginAsync } from 'fastify';
import type { Catalog, Health, Primitive } from '#gateway';
import { byService, viewEndpoints, viewModel, viewService } from './models-view.ts';

export interface ModelsDeps {
  readonly catalog: Pick<Catalog, 'offers' | 'resolve' | 'version'>;
  readonly health: Pick<Health, 'available' | 'stats'>;
}

const TYPES = ['chat', 'image', 'video', 'all'] as const;
const FILTERS = ['models', 'agents'] as const;
type Type = (typeof TYPES)[number];
type Filter = (typeof FILTERS)[number];

interface Listing {
  readonly body: Buffer;
  readonly etag: string;
}

const querySchema = {
  type: 'object',
  properties: {
    type: { type: 'string', enum: TYPES, default: 'chat', description: 'Which kind of model: the other lists stay empty.' },
    filter: { type: 'string', enum: FILTERS, description: '`models` leaves agents and tools out; `agents` leaves everything else out.' },
  },
} as const;

/** `GET /models`, one model, and who offers it. Public. Register it under `/api/v1`. */
export function modelsRoutes({ catalog, health }: ModelsDeps): FastifyPluginAsync {
  const listings = new Map<string, Listing>();
  let version = -1;

  /** Serialised once per set of offers: listings are asked for far more often than offers change. */
  function listing(type: Type, filter: Filter | undefined): Listing {
    if (version !== catalog.version()) {
      version = catalog.version();
      listings.clear();
    }
    const key = `${type} ${filter ?? ''}`;
    let found = listings.get(key);
    if (!found) {
      const body = Buffer.from(JSON.stringify(viewListing(catalog, type, filter)));
      found = { body, etag: `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"` };
      listings.set(key, found);
    }
    return found;
  }

  return async (app) => {
    app.get<{ Querystring: { type: Type; filter?: Filter } }>(
      '/models',
      {
        schema: {
          summary: 'List models',
          description: 'Everything that can be called, with providers and prices, in one answer. No credential is needed.',
          tags: ['Models'],
          security: [],
          querystring: querySchema,
        },
      },
      (request, reply) => {
        const { body, etag } = listing(request.query.type, request.query.filter);
        void reply.header('etag', etag).header('cache-control', 'no-cache');
        if (request.headers['if-none-match'] === etag) return reply.code(304).send();
        return reply.type('application/json; charset=utf-8').send(body);
      },
    );

    // A name has one slash or more (`<author>/<slug>`), or none; encoded or not.
    app.get<{ Params: { '*': string } }>(
      '/models/*',
      {
        schema: {
          summary: 'Show a model, or with /endpoints at the end who offers it',
          description:
            '`/models/{author}/{slug}` is the entry of the listing; `/models/{author}/{slug}/endpoints` adds health, latency and throughput.',
          tags: ['Models'],
          security: [],
          params: { type: 'object', properties: { '*': { type: 'string', description: 'The name of the model' } } },
        },
      },
      (request) => {
        const path = request.params['*'];
        const name = path.endsWith(ENDPOINTS) ? path.slice(0, -ENDPOINTS.length) : path;
        const { offers } = catalog.resolve(name, 'model');
        return name === path ? viewModel(offers) : viewEndpoints(offers, health);
      },
    );
  };
}

const ENDPOINTS = '/endpoints';

function viewListing(catalog: ModelsDeps['catalog'], type: Type, filter: Filter | undefined): Record<string, unknown> {
  const services = (primitive: Primitive) => byService(catalog.offers(primitive));
  const models = filter !== 'agents';
  const agents = filter === 'agents' || (filter === undefined && type === 'all');
  return {
    object: 'list',
    data: models && (type === 'chat' || type === 'all') ? services('model').map(viewModel) : [],
    agents: agents ? services('agent').map(viewService) : [],
    image_models: models && (type === 'image' || type === 'all') ? services('image').map(viewService) : [],
    video_models: models && (type === 'video' || type === 'all') ? services('video').map(viewService) : [],
    tools: filter === undefined && type === 'all' ? services('tool').map(viewService) : [],
  };
}
