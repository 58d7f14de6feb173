import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { Primitive } from '#config';
import { createFreshPage, sendPage, tagPage, type TaggedPage } from '#gateway';
import { dataOf, listOf, objectOf } from '../answer-schemas.ts';
import { primitivesSchema } from './market-schema.ts';
import { serviceDetailSchema, serviceRowSchema } from './services-schema.ts';
import { viewServiceRows, viewServiceOfKind } from './services-view.ts';
import type { MarketDeps } from './tool-pages.ts';

const OPEN = 'No credential is needed. Send the `etag` as `if-none-match`, and an unchanged page is not sent again.';

/**
 * The public routes for services of all kinds: one list, and one page for each service. Register it under `/api/v1`.
 */
export function servicesRoutes(app: FastifyInstance, deps: MarketDeps): void {
  const { catalog, now } = deps;
  const list = createFreshPage(() => ({ data: viewServiceRows(catalog.offers, deps) }), {
    version: catalog.version,
    now,
  });
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
    (request, reply) => send(request, reply, list()),
  );

  const lists = new Map<Primitive, () => TaggedPage>();
  const listOfKind = (kind: Primitive) => {
    let page = lists.get(kind);
    if (!page) {
      const view = () => viewServiceRows((asked) => (asked === kind ? catalog.offers(asked) : []), deps);
      lists.set(kind, (page = createFreshPage(() => ({ data: view() }), { version: catalog.version, now })));
    }
    return page();
  };
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
    (request, reply) => sendPage(request, reply, listOfKind(request.params.primitive)),
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
