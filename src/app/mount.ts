import type { FastifyInstance, FastifyPluginAsync } from 'fastify';

const NAME = Symbol.for('fastify.display-name');

/** Adds the routes of a room in their order. Without a name the framework looks for one in all loaded modules. */
export async function mount(
  server: FastifyInstance,
  routes: Readonly<Record<string, FastifyPluginAsync>>,
  options: { readonly prefix?: string } = {},
): Promise<void> {
  for (const [name, plugin] of Object.entries(routes))
    await server.register(Object.assign(plugin, { [NAME]: name }), options);
}
