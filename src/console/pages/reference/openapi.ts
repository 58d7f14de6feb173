import { createRequire } from 'node:module';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { FastifyDynamicSwaggerOptions } from '@fastify/swagger';
import type { FastifyInstance, FastifySchema } from 'fastify';
import { ownTurn } from '#wire';
import { EXAMPLE_MODEL, hasTagged, tagOf } from '#http';
import { ERROR, PAYMENT_REQUIRED } from '#http/error-schemas';
import {
  completeOperations,
  type CompletionOptions,
  type NamedResponses,
  SHARED_HEADERS,
  SHARED_PARAMETERS,
  type PathTable,
} from './complete-operations.ts';
import { addExamplesAndLinks } from './examples-and-links.ts';
import { nameSchemas, type NamedSchemas } from './named-schemas.ts';

/** The chapters of the reference, in order. A route names its chapter in `schema.tags`. Other chapters come last. */
const CHAPTERS = [
  { name: 'Chat', description: 'Chat completions, streamed or not.' },
  { name: 'Audio', description: 'Speech, transcriptions and translations.' },
  {
    name: 'Batches',
    description: 'Files of requests that are called while their client does not wait, and files with their results.',
  },
  { name: 'Images', description: 'Images, made of words or of other images.' },
  { name: 'Videos', description: 'Videos, which are tasks: queued, looked at, fetched.' },
  { name: 'MCP', description: 'Tools, for MCP clients of every revision.' },
  { name: 'Agents', description: 'A2A agents, both versions, by JSON-RPC and HTTP+JSON, and their cards.' },
  { name: 'JSON-RPC', description: 'All of it at one endpoint, with batches.' },
  { name: 'Analytics', description: 'Figures of calls by day: of the market, of a service, and your own.' },
  { name: 'Models', description: 'What can be called, by whom it is served and what it costs.' },
  { name: 'Account', description: 'Balance, keys and the record of each call.' },
  {
    name: 'Money',
    description:
      'Paying in and out over chains: payments of x402, deposits, withdrawals, and the wallets of an account.',
  },
  { name: 'Providers', description: 'What a provider sees of itself: its services and what they earned.' },
  {
    name: 'Administration',
    description: "The operator's side: accounts, credit, keys, the books of chains, audit. Needs the admin key.",
  },
  { name: 'Operations', description: 'Health and metrics.' },
];

const INTRODUCTION = `One address for many providers. Every call is priced before it starts, locked from your escrow, forwarded, and settled by what it really used.

Clients of the OpenAI API work unchanged: set their base URL to \`/api/v1\` of this host and use a key of this gateway. MCP clients find the tools of all services at \`/mcp\`, and those of one at \`/mcp/{service}\`; A2A clients find an agent at \`/a2a/{agent}\`. A wallet can sign in where a key would, and whoever has one can sell calls here too: \`tollgate provide\` connects models, tools and agents from behind a firewall. Amounts are USD; inside, money is counted in whole micro-USD.`;

export interface ReferenceOptions extends CompletionOptions {
  readonly version: string;
  /** Returns a chat model that can be called, or null if there is no such model. */
  readonly exampleModel: () => string | null;
}

/**
 * `/openapi.json`: the OpenAPI document of every route that is registered after this call, made from the schemas that
 * validate requests. Call it on the root instance before any route is added. Returns a function that reads the
 * document.
 */
export function describeRoutes(server: FastifyInstance, options: ReferenceOptions): () => Promise<object> {
  const routes = collectRoutes(server);
  let document: Promise<object> | null = null;
  const read = () => (document ??= describe(routes, options));
  let described: string | null = null;
  let example: OpenApiAnswer | null = null;
  server.get('/openapi.json', { schema: { hide: true }, config: { anyPage: true } }, async (request, reply) => {
    if (described === null) {
      const services = await read();
      await ownTurn();
      described = JSON.stringify(services);
      await ownTurn();
    }
    const model = options.exampleModel() ?? EXAMPLE_MODEL;
    if (example?.model !== model) {
      const text = described.replaceAll(JSON.stringify(EXAMPLE_MODEL), () => JSON.stringify(model));
      example = { model, text, etag: tagOf(text), packed: promisify(gzip)(text) };
    }
    const { text, etag, packed } = example;
    void reply
      .headers({ etag, 'cache-control': 'no-cache', vary: 'accept-encoding' })
      .header('content-type', 'application/json; charset=utf-8');
    if (hasTagged(request, etag)) return reply.code(304).send();
    if (!/\bgzip\b/.test(request.headers['accept-encoding'] ?? '')) return reply.send(text);
    return reply.header('content-encoding', 'gzip').send(await packed);
  });
  return read;
}

/** The document with the examples of one model. 0.8 MB become 0.1 MB, compressed once. */
interface OpenApiAnswer {
  readonly model: string;
  readonly text: string;
  readonly etag: string;
  readonly packed: Promise<Buffer>;
}

function settings({ version }: ReferenceOptions): FastifyDynamicSwaggerOptions {
  return {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'tollgate',
        version,
        description: INTRODUCTION,
        license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
      },
      servers: [{ url: '/', description: 'This gateway' }],
      tags: CHAPTERS,
      security: [{ bearer: [] }, { apiKey: [] }, { wallet: [] }],
      components: {
        securitySchemes: {
          bearer: {
            type: 'http',
            scheme: 'bearer',
            description: 'An API key: `svc-sk-…`. For the administration, the admin key.',
          },
          apiKey: {
            type: 'apiKey',
            in: 'header',
            name: 'x-api-key',
            description: 'The same API key in another header.',
          },
          wallet: {
            type: 'apiKey',
            in: 'header',
            name: 'SIGN-IN-WITH-X',
            description:
              'A Solana or EVM wallet in place of a key: the base64 of `{"message", "signature"}`, a CAIP-122 text and what the wallet signed of it. `GET /api/v1/auth/nonce` shows one to sign; `tollgate siwx` prints the header.',
          },
        },
      },
    },
    transform: ({ schema, url }) => nameWildcard(schema, url),
  };
}

/** The document of these routes. What several operations have in common is in `components`, under a name. */
async function describe(routes: DescribedRoutes, options: ReferenceOptions): Promise<object> {
  const schemas: NamedSchemas = {};
  const responses: NamedResponses = {};
  nameSchemas([{ schema: ERROR }, { schema: PAYMENT_REQUIRED }], schemas);
  const document = await documentOf(routes, settings(options), (paths) => {
    const table = nameSchemas(paths as PathTable, schemas);
    completeOperations(table, options, responses);
    return table;
  });
  await ownTurn();
  const examples = addExamplesAndLinks(pathsOf(document));
  const parts = { schemas, responses, parameters: SHARED_PARAMETERS, headers: SHARED_HEADERS, examples };
  const { components = {} } = document as { readonly components?: object };
  // Chapters without routes are removed.
  const operations = Object.values(pathsOf(document)).flatMap((all) => Object.values(all));
  const used = new Set(operations.flatMap(({ tags = [] }) => tags));
  return {
    ...document,
    tags: CHAPTERS.filter(({ name }) => used.has(name)),
    components: { ...components, ...parts },
  };
}

/** The paths of a document, typed with the members that these files use. */
export function pathsOf(document: object): PathTable {
  return (document as { paths?: PathTable }).paths ?? {};
}

/** OpenAPI has no wildcards, so `/models/*` becomes `/models/{name}`. */
function nameWildcard(schema: FastifySchema | undefined, url: string): { schema: FastifySchema; url: string } {
  const params: { readonly properties?: Readonly<Record<string, unknown>> } = schema?.params ?? {};
  if (!schema || !url.endsWith('/*') || !params.properties?.['*']) return { schema: schema ?? {}, url };
  const { '*': name, ...others } = params.properties;
  const pathParams = { ...params, required: [...Object.keys(others), 'name'], properties: { ...others, name } };
  return { schema: { ...schema, params: pathParams }, url: url.replace(/\*$/, ':name') };
}

interface OpenApiDocument {
  readonly paths?: Record<string, object>;
}

interface DescribedRoute {
  readonly url: string;
  readonly method: string | string[];
  readonly schema?: FastifySchema;
}

type DescribedRoutes = readonly DescribedRoute[];

/** Records every route that is added from now on, except HEAD. */
function collectRoutes(server: FastifyInstance): DescribedRoutes {
  const routes: DescribedRoute[] = [];
  server.addHook('onRoute', (route) => {
    // Its schema is read later, because the route's own plugin may still hide it.
    if (route.method !== 'HEAD') routes.push(route);
  });
  return routes;
}

/** Routes that are described in one turn of the event loop. A turn for all of them would take 0.1 seconds. */
const ROUTES_PER_TURN = 8;

/**
 * Makes the OpenAPI document of the routes. `@fastify/swagger` describes the routes of a server, so separate servers
 * are created for it. This is done at the first request for the document. So most gateways never load it. `complete`
 * gets the paths of some routes at a time, and returns what the document says of them.
 */
async function documentOf(
  routes: DescribedRoutes,
  options: FastifyDynamicSwaggerOptions,
  complete: (paths: Record<string, object>) => Record<string, object>,
): Promise<object> {
  const { default: createServer } = await import('fastify');
  const require = createRequire(createRequire(import.meta.url).resolve('@fastify/swagger'));
  // The largest packages that it imports are loaded first, each in its own turn. Which ones it imports is its own
  // business: test/console/pages/reference/swagger-private-parts.test.ts has the version with which this was checked.
  for (const part of ['yaml', 'json-schema-resolver']) {
    await ownTurn();
    require(part);
  }
  await ownTurn();
  const { default: swagger } = await import('@fastify/swagger');
  let whole: OpenApiDocument | null = null;
  const visible = routes.flatMap(({ url, method, schema = {} }) => (schema.hide ? [] : [{ url, method, schema }]));
  for (let at = 0; at < visible.length; at += ROUTES_PER_TURN) {
    await ownTurn();
    const server: FastifyInstance = createServer({ exposeHeadRoutes: false });
    server.setValidatorCompiler(() => () => true);
    server.setSerializerCompiler(() => JSON.stringify);
    await server.register(swagger, options);
    for (const route of visible.slice(at, at + ROUTES_PER_TURN)) server.route({ ...route, handler: () => null });
    await server.ready();
    await ownTurn();
    const { paths = {}, ...others } = server.swagger() as OpenApiDocument;
    whole ??= { ...others, paths: {} };
    // The methods of one path may be in several pieces.
    await ownTurn();
    for (const [path, operations] of Object.entries(complete(paths)))
      whole.paths![path] = { ...whole.paths![path], ...operations };
  }
  return whole ?? {};
}
