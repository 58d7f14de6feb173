import type { FastifyInstance } from 'fastify';

export interface Route {
  readonly method: string;
  /** With `:name` for parameters and `*` for the rest of a path. */
  readonly path: string;
}

/** Every route that the server has, read from its own router: nothing that is registered can be missing. */
export function routesOf(server: FastifyInstance): readonly Route[] {
  const routes: Route[] = [];
  const prefixes: string[] = [];
  for (const line of server.printRoutes({ commonPrefix: false }).split('\n')) {
    const match = /^((?:│ {3}| {4})*)[├└]── (\S*) \(([A-Z, ]+)\)$/.exec(line);
    if (!match) {
      if (line.trim() !== '') throw new Error(`cannot read the route ${line}`);
      continue;
    }
    const depth = match[1]!.length / 4;
    prefixes.length = depth;
    prefixes.push(match[2] === '*' ? '/*' : match[2]!);
    const path = prefixes.join('').replaceAll(/\/{2,}/g, '/');
    for (const method of match[3]!.split(', ')) routes.push({ method, path });
  }
  return routes;
}

/** The path with a value for each parameter. */
export function fill(path: string, values: Readonly<Record<string, string>>): string {
  return path.replaceAll(/:(\w+)/g, (_match, name: string) => encodeURIComponent(values[name] ?? 'x')).replace('*', values['*'] ?? 'x');
}
