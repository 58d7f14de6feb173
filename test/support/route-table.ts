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
    // A route may be for some requests alone: then what it is for stands behind it. One of agent cards is for what
    // ends so.
    const suffix = line.includes('"agentCard":true') ? '/.well-known/agent-card.json' : '';
    const match = /^((?:│ {3}| {4})*)[├└]── (\S*) \(([A-Z, ]+)\)(?: \{.*\})?$/.exec(line);
    // One more of the same path, for other requests than the one above it.
    const again = match ? null : /^[│ ]+ \S+ \(([A-Z, ]+)\)(?: \{.*\})?$/.exec(line);
    if (again) {
      for (const method of again[1]!.split(', ')) routes.push({ method, path: pathOf(prefixes) + suffix });
      continue;
    }
    if (!match) {
      if (line.trim() !== '') throw new Error(`cannot read the route ${line}`);
      continue;
    }
    const depth = match[1]!.length / 4;
    prefixes.length = depth;
    prefixes.push(match[2] === '*' ? '/*' : match[2]!);
    for (const method of match[3]!.split(', ')) routes.push({ method, path: pathOf(prefixes) + suffix });
  }
  return routes;
}

const pathOf = (prefixes: readonly string[]): string => prefixes.join('').replaceAll(/\/{2,}/g, '/');

/** The path with a value for each parameter. */
export function fill(path: string, values: Readonly<Record<string, string>>): string {
  return path
    .replaceAll(/:(\w+)/g, (_match, name: string) => encodeURIComponent(values[name] ?? 'x'))
    .replace('*', values['*'] ?? 'x');
}
