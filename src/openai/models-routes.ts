import type { FastifyPluginAsync } from 'fastify';
import { byService, createFreshPage, sendPage, tagPage, type Catalog, type Primitive, type Standings, type TaggedPage } from '#gateway';
import { viewEndpoints, viewImageModel, viewModel, viewService, viewVideoModel } from './models-view.ts';

export interface ModelsDeps extends Standings {
  readonly catalog: Pick<Catalog, 'offers' | 'resolve' | 'version'>;
  readonly now: () => number;
}

const TYPES = ['chat', 'image', 'video', 'all'] as const;
const FILTERS = ['models', 'agents'] as const;
type Type = (typeof TYPES)[number];
type Filter = (typeof FILTERS)[number];

const querySchema = {
  type: 'object',
  properties: {
    type: { type: 'string', enum: TYPES, default: 'chat', description: 'Which kind of model: the other lists stay empty.' },
    filter: { type: 'string', enum: FILTERS, description: '`models` leaves agents and tools out; `agents` leaves everything else out.' },
  },
} as const;

/** `GET /models`, one model, and who offers it. Public. Register it under `/api/v1`. */
export function modelsRoutes({ catalog, now, ...standings }: ModelsDeps): FastifyPluginAsync {
  const listings = new Map<string, () => TaggedPage>();

  /** Serialised once per set of offers: listings are asked for far more often than offers change. */
  function listing(type: Type, filter: Filter | undefined): TaggedPage {
    const key = `${type} ${filter ?? ''}`;
    let page = listings.get(key);
    if (!page) {
      page = createFreshPage(() => viewListing(catalog, type, filter), { version: catalog.version, now, freshMs: Infinity });
      listings.set(key, page);
    }
    return page();
  }

  return async (app) => {
    app.get<{ Querystring: { type: Type; filter?: Filter } }>(
      '/models',
      {
        schema: {
          summary: 'List models',
          description:
            'Everything that can be called, with providers and prices, in one answer. No credential is needed. ' +
            'As a chat model an agent of `agents` is called `a2a/<name>`, a tool of a service in `tools` is called `mcp/<name>/<tool>`.',
          tags: ['Models'],
          security: [],
          querystring: querySchema,
        },
      },
      (request, reply) => sendPage(request, reply, listing(request.query.type, request.query.filter)),
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
      (request, reply) => {
        const path = request.params['*'];
        const name = path.endsWith(ENDPOINTS) ? path.slice(0, -ENDPOINTS.length) : path;
        const { offers } = catalog.resolve(name, 'model');
        return sendPage(request, reply, tagPage(name === path ? viewModel(offers) : viewEndpoints(offers, standings)));
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
    image_models: models && (type === 'image' || type === 'all') ? services('image').map(viewImageModel) : [],
    video_models: models && (type === 'video' || type === 'all') ? services('video').map(viewVideoModel) : [],
    tools: filter === undefined && type === 'all' ? services('tool').map(viewService) : [],
  };
}
