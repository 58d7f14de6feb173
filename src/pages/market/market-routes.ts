import type { FastifyPluginAsync } from 'fastify';
import { printable, GatewayError } from '#wire';
import { type Catalog, type Standings, createFreshPage, sendPage, tagPage, type ToolListings } from '#gateway';
import { providerDetailSchema, providerSchema, serviceSchema, toolServiceSchema } from './market-schema.ts';
import { viewProviderDetail, viewProviders } from './providers-view.ts';
import { viewService, viewServices } from './tool-agent-view.ts';
import { createToolPages } from './tool-pages.ts';

export interface MarketDeps extends Standings {
  readonly catalog: Pick<Catalog, 'offers' | 'resolve' | 'version'>;
  /** What is in the tool services; without it, they are listed without their tools. */
  readonly listings?: ToolListings;
  readonly now: () => number;
}

const page = (description: string, data: object) => ({
  200: { description, type: 'object', required: ['data'], properties: { data } },
});
const list = (description: string, items: object) => page(description, { type: 'array', items });

const PUBLIC = 'No credential is needed. Send the `etag` as `if-none-match`, and an unchanged page is not sent again.';

/** The catalogue across providers: who serves, tools and agents. Public. Register it under `/api/v1`. */
export function marketRoutes(deps: MarketDeps): FastifyPluginAsync {
  const { catalog } = deps;
  const fresh = (data: () => unknown) =>
    createFreshPage(() => ({ data: data() }), { version: catalog.version, now: deps.now });
  const providers = fresh(() => viewProviders(catalog.offers(), deps));
  const tools = createToolPages(deps);
  const agents = fresh(() => viewServices(catalog.offers('agent'), catalog.offers(), deps));
  return async (app) => {
    app.get(
      '/providers',
      {
        schema: {
          summary: 'List providers',
          description: `Every provider that offers a service here, with its health as this gateway sees it. ${PUBLIC}`,
          tags: ['Models'],
          security: [],
          response: list('Providers, by name', providerSchema),
        },
      },
      (request, reply) => sendPage(request, reply, providers()),
    );

    app.get<{ Params: { readonly id: string } }>(
      '/providers/:id',
      {
        schema: {
          summary: 'Show a provider',
          description: `What it offers, at what price, and how well it has served lately. ${PUBLIC}`,
          tags: ['Models'],
          security: [],
          params: {
            type: 'object',
            required: ['id'],
            properties: { id: { type: 'string', description: 'Public key of the provider' } },
          },
          response: page('The provider', providerDetailSchema),
        },
      },
      (request, reply) => {
        const { id } = request.params;
        // An EVM address is the same in every spelling of its hex.
        const wanted = /^0x/i.test(id) ? id.toLowerCase() : id;
        const offers = catalog.offers().filter((offer) => offer.provider.id === wanted);
        if (offers.length === 0)
          throw new GatewayError('not_found', `Provider not found: ${printable(id)}`, { param: 'id' });
        return sendPage(request, reply, tagPage({ data: viewProviderDetail(offers, deps) }));
      },
    );

    app.get<{ Querystring: { readonly service?: string; readonly schemas?: boolean } }>(
      '/tools',
      {
        schema: {
          summary: 'List tools',
          description: `Every tool service (an MCP server), with its tools, providers and prices. ${PUBLIC}`,
          tags: ['Models'],
          security: [],
          querystring: {
            type: 'object',
            properties: {
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
            },
          },
          response: list('Tool services, by name', toolServiceSchema),
        },
      },
      (request, reply) => {
        const { service = null, schemas = false } = request.query;
        return sendPage(request, reply, tools(service, schemas));
      },
    );

    app.get(
      '/agents',
      {
        schema: {
          summary: 'List agents',
          description: `Every agent (A2A), with providers and prices. ${PUBLIC}`,
          tags: ['Models'],
          security: [],
          response: list('Agents, by name', serviceSchema),
        },
      },
      (request, reply) => sendPage(request, reply, agents()),
    );

    // A name has one slash or more, or none; encoded or not.
    app.get<{ Params: { readonly '*': string } }>(
      '/agents/*',
      {
        schema: {
          summary: 'Show an agent',
          description: `Who offers it, at what price, and how well they have served lately. With \`<provider id>:<name>\` that provider alone. ${PUBLIC}`,
          tags: ['Models'],
          security: [],
          params: { type: 'object', properties: { '*': { type: 'string', description: 'The name of the agent' } } },
          response: page('The agent', serviceSchema),
        },
      },
      (request, reply) => {
        const { offers } = catalog.resolve(request.params['*'], 'agent');
        const doors = catalog.offers().filter((offer) => offer.service === offers[0]!.service);
        const data = viewService(
          offers,
          ({ provider }) => doors.filter((offer) => offer.provider.id === provider.id),
          deps,
        );
        return sendPage(request, reply, tagPage({ data }));
      },
    );
  };
}
