import type { FastifyInstance, FastifyPluginAsync } from 'fastify';
import { printable } from '#security';
import { GatewayError } from '#errors';
import type { PriceBook } from '#billing';
import { METERS, type Rates, unitUsd } from '#billing/amounts';
import type { Catalog } from '#catalog';
import { createFreshPage, sendPage, tagPage } from '#http';
import { dataOf, listOf, objectOf, titled } from '../route-schemas.ts';
import { providerDetailSchema, providerSchema, serviceSchema, toolServiceSchema } from './market-schema.ts';
import { servicesRoutes } from './services-routes.ts';
import { viewProviderDetail, viewProviders } from './providers-view.ts';
import { viewService, viewServices, createToolPages, type MarketDeps } from './tool-pages.ts';

type Offers = ReturnType<Catalog['offers']>;

const OPEN = 'No credential is needed. Send the `etag` as `if-none-match`, and an unchanged page is not sent again.';

const described = (summary: string, description: string) => ({
  summary,
  description: `${description} ${OPEN}`,
  tags: ['Models'],
  security: [],
});

interface MarketRoutesDeps extends MarketDeps {
  readonly prices: Pick<PriceBook, 'find'>;
}

/** The public routes of the catalogue across providers: providers, tools and agents. Register it under `/api/v1`. */
export function marketRoutes(deps: MarketRoutesDeps): FastifyPluginAsync {
  return async (app) => {
    servicesRoutes(app, deps);
    listProviders(app, deps);
    showProvider(app, deps);
    listTools(app, deps);
    listAgents(app, deps);
    showAgent(app, deps);
    showPrice(app, deps);
  };
}

function listProviders(app: FastifyInstance, deps: MarketDeps): void {
  const providers = freshPage(deps, (offers) => viewProviders(offers, deps));
  const schema = {
    ...described(
      'List providers',
      'Every provider that offers a service here, with its health as measured by this gateway.',
    ),
    response: { 200: { description: 'Providers, by name', ...listOf(providerSchema) } },
  };
  app.get('/providers', { schema }, async (request, reply) => sendPage(request, reply, await providers()));
}

function showProvider(app: FastifyInstance, deps: MarketDeps): void {
  const id = { type: 'string', description: 'Public key of the provider' };
  const schema = {
    ...described('Show a provider', 'Its services, their prices, and how well it has served recently.'),
    params: objectOf({ id }),
    response: { 200: { description: 'The provider', ...dataOf(providerDetailSchema) } },
  };
  app.get<{ Params: { readonly id: string } }>('/providers/:id', { schema }, (request, reply) => {
    const { id: text } = request.params;
    // The hex digits of an EVM address may be in upper or lower case.
    const publicKey = /^0x/i.test(text) ? text.toLowerCase() : text;
    const offers = deps.catalog.offers().filter((offer) => offer.provider.id === publicKey);
    if (offers.length === 0)
      throw new GatewayError('not_found', `Provider not found: ${printable(text)}`, { param: 'id' });
    return sendPage(request, reply, tagPage({ data: viewProviderDetail(offers, deps) }));
  });
}

const ratesSchema = {
  type: 'object',
  additionalProperties: { type: 'string' },
  description: 'USD for one unit of each meter that has a price, as an exact decimal.',
} as const;

const priceSchema = titled(
  'PriceVersion',
  objectOf({
    id: { type: 'string' },
    provider: { type: 'string', description: 'Public key of the provider' },
    service: { type: 'string' },
    rates: ratesSchema,
    tiers: {
      type: 'array',
      description: 'Other rates for requests with long prompts, by rising `above`.',
      items: objectOf({
        above: { type: 'integer', description: 'They hold for prompts of more tokens than this.' },
        rates: ratesSchema,
      }),
    },
    first_offered_at: { type: 'string', description: 'RFC 3339' },
  }),
);

function showPrice(app: FastifyInstance, { prices }: MarketRoutesDeps): void {
  const schema = {
    ...described(
      'Show a price version',
      'What the id of a price in a receipt or in the record of a call stands for. A price never changes: a change of rates has another id.',
    ),
    params: objectOf({ id: { type: 'string', maxLength: 64, description: 'Such as `price-2fd62a89…`.' } }),
    response: { 200: { description: 'The price', ...dataOf(priceSchema) } },
  };
  const viewRates = (rates: Rates) =>
    Object.fromEntries(METERS.flatMap((meter) => (rates[meter] === undefined ? [] : [[meter, unitUsd(rates[meter])]])));
  app.get<{ Params: { readonly id: string } }>('/prices/:id', { schema }, async ({ params }, reply) => {
    const price = await prices.find(params.id);
    if (price === null) throw new GatewayError('not_found', 'There is no price with this id', { param: 'id' });
    const { id, provider, service, rates, createdAt } = price;
    // It never changes.
    reply.header('cache-control', 'public, max-age=86400, immutable');
    return {
      data: {
        id,
        provider,
        service,
        rates: viewRates(rates),
        tiers: (rates.tiers ?? []).map(({ above, rates: at }) => ({ above: Number(above), rates: viewRates(at) })),
        first_offered_at: new Date(createdAt).toISOString(),
      },
    };
  });
}

function listTools(app: FastifyInstance, deps: MarketDeps): void {
  const tools = createToolPages(deps);
  const properties = {
    service: {
      type: 'string',
      maxLength: 256,
      description: 'Only the service of this name, or `<provider id>:<name>`, with all of its tools',
    },
    schemas: {
      type: 'boolean',
      default: false,
      description: 'With the input schemas of the tools; only with `service`',
    },
  };
  const schema = {
    ...described('List tools', 'Every tool service (an MCP server), with its tools, providers and prices.'),
    querystring: { type: 'object', properties },
    response: { 200: { description: 'Tool services, by name', ...listOf(toolServiceSchema) } },
  };
  app.get<{ Querystring: { readonly service?: string; readonly schemas?: boolean } }>(
    '/tools',
    { schema },
    async (request, reply) => {
      const { service = null, schemas = false } = request.query;
      return sendPage(request, reply, await tools(service, schemas));
    },
  );
}

function listAgents(app: FastifyInstance, deps: MarketDeps): void {
  const agents = freshPage(deps, (all) => viewServices(deps.catalog.offers('agent'), all, deps));
  const schema = {
    ...described('List agents', 'Every agent (A2A), with providers and prices.'),
    response: { 200: { description: 'Agents, by name', ...listOf(serviceSchema) } },
  };
  app.get('/agents', { schema }, async (request, reply) => sendPage(request, reply, await agents()));
}

function showAgent(app: FastifyInstance, deps: MarketDeps): void {
  const { catalog } = deps;
  const schema = {
    ...described(
      'Show an agent',
      'The providers of the agent, their prices, and how well they have served recently. With `<provider id>:<name>` only that provider.',
    ),
    params: { type: 'object', properties: { '*': { type: 'string', description: 'The name of the agent' } } },
    response: { 200: { description: 'The agent', ...dataOf(serviceSchema) } },
  };
  // A name may contain slashes, encoded or not.
  app.get<{ Params: { readonly '*': string } }>('/agents/*', { schema }, (request, reply) => {
    const { offers } = catalog.resolve(request.params['*'], 'agent');
    const doors = catalog.offers().filter((offer) => offer.service === offers[0]!.service);
    const data = viewService(
      offers,
      ({ provider }) => doors.filter((offer) => offer.provider.id === provider.id),
      deps,
    );
    return sendPage(request, reply, tagPage({ data }));
  });
}

/** A page of all offers. It is made again after the catalogue has changed. */
const freshPage = ({ catalog, now }: MarketDeps, rows: (offers: Offers) => Iterable<object>) =>
  createFreshPage(() => rows(catalog.offers()), { version: catalog.version, now });
