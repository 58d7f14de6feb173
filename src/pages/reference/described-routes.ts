import type { FastifyDynamicSwaggerOptions } from '@fastify/swagger';
import type { FastifyInstance, FastifySchema } from 'fastify';

interface DescribedRoute {
  readonly url: string;
  readonly method: string | string[];
  readonly schema: FastifySchema;
}

/** Records every route that is added from now on, except hidden routes and HEAD. */
export function collectRoutes(server: FastifyInstance): readonly DescribedRoute[] {
  const routes: DescribedRoute[] = [];
  server.addHook('onRoute', ({ url, method, schema }) => {
    if (method !== 'HEAD' && !schema?.hide) routes.push({ url, method, schema: schema ?? {} });
  });
  return routes;
}

/**
 * Makes the OpenAPI document of the routes. `@fastify/swagger` describes the routes of a server, so a separate server
 * is created for it. This is done at the first request for the document. So most gateways never load it.
 */
export async function documentOf(
  routes: readonly DescribedRoute[],
  options: FastifyDynamicSwaggerOptions,
): Promise<object> {
  const [{ default: createServer }, { default: swagger }] = await Promise.all([
    import('fastify'),
    import('@fastify/swagger'),
  ]);
  const server: FastifyInstance = createServer({ exposeHeadRoutes: false });
  server.setValidatorCompiler(() => () => true);
  server.setSerializerCompiler(() => JSON.stringify);
  await server.register(swagger, options);
  for (const route of routes) server.route({ ...route, handler: () => null });
  await server.ready();
  return server.swagger();
}
