import type { FastifyInstance, FastifyPluginAsync } from 'fastify';

const NAME = Symbol.for('fastify.display-name');

/** The prefix of most routes. */
export const API = { prefix: '/api/v1' };

/**
 * Registers plugins in their order, each under its key. Without a name, Fastify searches all loaded modules for one.
 */
export async function mount(
  server: FastifyInstance,
  routes: Readonly<Record<string, FastifyPluginAsync>>,
  options: { readonly prefix?: string } = {},
): Promise<void> {
  for (const [name, plugin] of Object.entries(routes))
    await server.register(Object.assign(plugin, { [NAME]: name }), options);
}
