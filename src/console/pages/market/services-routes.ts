import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { type Primitive, PRIMITIVES } from '#config';
import { createFreshPage, sendPage, tagPage, type TaggedPage } from '#http';
import { healthProperties, pricingSchema, stopsProperties } from '#catalog';
import { dataOf, listOf, objectOf, titled } from '../route-schemas.ts';
import { primitivesSchema, serviceStatusSchema } from './market-schema.ts';
import { viewServiceRows, viewServiceOfKind } from './services-view.ts';
import { TYPICAL_USES } from './typical-use.ts';
import type { MarketDeps } from './tool-pages.ts';

const OPEN = 'No credential is needed. Send the `etag` as `if-none-match`, and an unchanged page is not sent again.';

/**
 * The public routes for services of all kinds: one list, and one page for each service. Register it under `/api/v1`.
 */
export function servicesRoutes(app: FastifyInstance, deps: MarketDeps): void {
  const { catalog, now } = deps;
  const pageOf = (primitives: readonly Primitive[]) =>
    createFreshPage(() => viewServiceRows(primitives, catalog.offers, deps), { version: catalog.version, now });
  const list = pageOf(PRIMITIVES);
  const send = createPackedSender();
  app.get(
    '/services',
    {
      schema: {
        summary: 'List services of every kind',
        description: `Models, tools, agents, images and videos in one list, each at the price of its cheapest provider. ${OPEN}`,
        operationId: 'listServices',
        tags: ['Models'],
        security: [],
        response: { 200: { description: 'Services, by kind and name', ...listOf(serviceRowSchema) } },
      },
    },
    async (request, reply) => send(request, reply, await list()),
  );

  const lists = new Map(PRIMITIVES.map((kind) => [kind, pageOf([kind])]));
  const primitive = { ...primitivesSchema.items, description: 'The kind of the service' };
  const name = { type: 'string', description: 'The name of the service. Slashes may be encoded' };
  app.get<{ Params: { readonly primitive: Primitive } }>(
    '/services/:primitive',
    {
      schema: {
        summary: 'List services of one kind',
        description: `The same list with the services of only one kind. ${OPEN}`,
        operationId: 'listServicesOfKind',
        tags: ['Models'],
        security: [],
        params: objectOf({ primitive }),
        response: { 200: { description: 'Services, by name', ...listOf(serviceRowSchema) } },
      },
    },
    async (request, reply) => sendPage(request, reply, await lists.get(request.params.primitive)!()),
  );
  app.get<{ Params: { readonly primitive: Primitive; readonly '*': string } }>(
    '/services/:primitive/*',
    {
      schema: {
        summary: 'Show a service',
        description: `One service with the prices of its providers, and how well they have served recently. ${OPEN}`,
        operationId: 'getService',
        tags: ['Models'],
        security: [],
        params: objectOf({ primitive, '*': name }),
        response: { 200: { description: 'The service', ...dataOf(serviceDetailSchema) } },
      },
    },
    (request, reply) => {
      const { offers } = catalog.resolve(request.params['*'], request.params.primitive);
      return sendPage(request, reply, tagPage({ data: viewServiceOfKind(offers, deps) }));
    },
  );
}

/**
 * Creates a function that sends a large page, compressed if the client accepts it. Each version of the page is
 * compressed only once.
 */
function createPackedSender(): (
  request: FastifyRequest,
  reply: FastifyReply,
  page: TaggedPage,
) => Promise<FastifyReply> {
  let last: { readonly etag: string; readonly packed: Promise<Buffer> } | null = null;
  return async (request, reply, page) => {
    void reply.header('vary', 'accept-encoding');
    if (!/\bgzip\b/.test(request.headers['accept-encoding'] ?? '')) return sendPage(request, reply, page);
    if (last?.etag !== page.etag) last = { etag: page.etag, packed: promisify(gzip)(page.body) };
    const body = await last.packed;
    void reply.header('content-encoding', 'gzip');
    return sendPage(request, reply, { etag: page.etag, body });
  };
}

const texts = (description: string) => ({ type: 'array', items: { type: 'string' }, description }) as const;
const tokens = (description: string) => ({ type: ['integer', 'null'], description }) as const;

const contextLength = tokens('Most tokens that a model accepts in one call');
const maxOutputTokens = tokens('Most tokens of one answer; null where the provider declares nothing');
const listedSince = { type: 'string', description: 'RFC 3339' } as const;
const typicalUsdSchema = {
  type: 'number',
  description: `USD of a typical use, to compare prices: ${TYPICAL_USES}`,
} as const;

const rowProperties = {
  primitive: primitivesSchema.items,
  name: { type: 'string', description: 'What it is called by' },
  display_name: { type: 'string' },
  description: { type: 'string', description: 'The words of the provider. In the list its first 200 characters' },
  status: serviceStatusSchema,
  uptime: {
    type: ['number', 'null'],
    description: "Share of the last hour's calls that did not fail, 0 to 1; null when there were none",
  },
  requests: { type: 'integer', description: 'Calls of the last hour' },
  listed_since: listedSince,
  input_modalities: texts('Of models, images and videos'),
  output_modalities: texts('Of models, images and videos'),
  context_length: contextLength,
  max_output_tokens: maxOutputTokens,
  resolutions: texts('Of images and videos'),
  durations: texts('Of videos'),
  aspect_ratios: texts('Of images and videos'),
  formats: texts('Of image files'),
  supported_parameters: texts(
    'Request fields that it accepts in addition to those of every service of its kind. For models, all fields are in `supported_parameters` of `/models`',
  ),
  ...stopsProperties,
  pricing: pricingSchema,
  typical_usd: typicalUsdSchema,
  typical_seconds: {
    type: ['number', 'null'],
    description: 'Length of the video that `typical_usd` is the price of; null for other kinds',
  },
} as const;

const providerSchema = { id: { type: 'string', description: 'Public key' }, name: { type: 'string' } } as const;

const serviceRowSchema = titled(
  'ServiceRow',
  objectOf({ ...rowProperties, providers: { type: 'array', items: objectOf(providerSchema) } }),
);

const serviceDetailSchema = titled(
  'ServiceDetail',
  objectOf({
    ...rowProperties,
    providers: {
      type: 'array',
      description: 'The cheapest first',
      items: objectOf({
        ...providerSchema,
        pricing: pricingSchema,
        typical_usd: typicalUsdSchema,
        reached: { type: 'string', enum: ['direct', 'tunnel'] },
        listed_since: listedSince,
        context_length: contextLength,
        max_output_tokens: maxOutputTokens,
        ...healthProperties,
      }),
    },
  }),
);
