import { createRequire } from 'node:module';
import type { FastifyDynamicSwaggerOptions } from '@fastify/swagger';
import type { FastifyInstance, FastifySchema } from 'fastify';
import { ownTurn } from '#wire';

/** The members of an OpenAPI document that are put together here. */
interface OpenApiDocument {
  readonly paths?: Record<string, object>;
}

interface DescribedRoute {
  readonly url: string;
  readonly method: string | string[];
  readonly schema?: FastifySchema;
}

export type DescribedRoutes = readonly DescribedRoute[];

/** Records every route that is added from now on, except HEAD. */
export function collectRoutes(server: FastifyInstance): DescribedRoutes {
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
export async function documentOf(
  routes: DescribedRoutes,
  options: FastifyDynamicSwaggerOptions,
  complete: (paths: Record<string, object>) => Record<string, object>,
): Promise<object> {
  const { default: createServer } = await import('fastify');
  const require = createRequire(createRequire(import.meta.url).resolve('@fastify/swagger'));
  // Its largest parts are loaded first, each in its own turn.
  for (const part of ['yaml', 'json-schema-resolver']) {
    await ownTurn();
    require(part);
  }
  await ownTurn();
  const { default: swagger } = await import('@fastify/swagger');
  let whole: OpenApiDocument | null = null;
  const shown = routes.flatMap(({ url, method, schema = {} }) => (schema.hide ? [] : [{ url, method, schema }]));
  for (let at = 0; at < shown.length; at += ROUTES_PER_TURN) {
    await ownTurn();
    const server: FastifyInstance = createServer({ exposeHeadRoutes: false });
    server.setValidatorCompiler(() => () => true);
    server.setSerializerCompiler(() => JSON.stringify);
    await server.register(swagger, options);
    for (const route of shown.slice(at, at + ROUTES_PER_TURN)) server.route({ ...route, handler: () => null });
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
