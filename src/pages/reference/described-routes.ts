import type { FastifyDynamicSwaggerOptions } from '@fastify/swagger';
import type { FastifyInstance, FastifySchema } from 'fastify';

interface DescribedRoute {
  readonly url: string;
  readonly method: string | string[];
  readonly schema: FastifySchema;
}

/** Notes every route that is added from now on and not hidden, but those that answer HEAD beside a GET. */
export function collectRoutes(server: FastifyInstance): readonly DescribedRoute[] {
  const routes: DescribedRoute[] = [];
  server.addHook('onRoute', ({ url, method, schema }) => {
    if (method !== 'HEAD' && !schema?.hide) routes.push({ url, method, schema: schema ?? {} });
  });
  return routes;
}

/**
 * The OpenAPI document of the routes. `@fastify/swagger` describes the routes of a server, so it gets one of its own,
 * when the document is first asked for: most starts of a gateway are never asked, and do not load it.
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
