import type { FastifyInstance } from 'fastify';

const NAME = Symbol.for('fastify.display-name');

type Register = (this: unknown, plugin: object, options?: object) => unknown;

/**
 * Gives a name to every plugin of the server that has no name. Otherwise the framework searches the exports of all
 * loaded modules for a name.
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
