import type { FastifyInstance } from 'fastify';

const NAME = Symbol.for('fastify.display-name');

type Register = (this: unknown, plugin: object, options?: object) => unknown;

/**
 * Gives every plugin of the server a name that has none. For a plugin without a name the framework looks through the
 * exports of all loaded modules.
 */
export function namePlugins(server: FastifyInstance): void {
  const register = server.register as unknown as Register;
  const named: Register = function (plugin, options) {
    const { [NAME]: given, name } = plugin as { readonly [NAME]?: string; readonly name?: string };
    if (given === undefined && Object.isExtensible(plugin)) Object.assign(plugin, { [NAME]: name || 'routes' });
    return register.call(this, plugin, options);
  };
  Object.assign(server, { register: named });
}
