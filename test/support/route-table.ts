import type { FastifyInstance } from 'fastify';

export interface Route {
  readonly method: string;
  /** With `:name` for parameters, or `{name}` before a colon, and `*` for the rest of the path. */
  readonly path: string;
}

/** Reads all routes from the server's own router, so that no registered route is missing. */
export function routesOf(server: FastifyInstance): readonly Route[] {
  const routes: Route[] = [];
  const prefixes: string[] = [];
  for (const line of server.printRoutes({ commonPrefix: false }).split('\n')) {
    // A route may have a constraint, which is shown after it. The routes of agent cards have one for the end of the
    // path.
    const suffix = line.includes('"agentCard":true') ? '/.well-known/agent-card.json' : '';
    const match = /^((?:│ {3}| {4})*)[├└]── (\S*) \(([A-Z, ]+)\)(?: \{.*\})?$/.exec(line);
    // Another route of the same path with another constraint than the one above it.
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

const pathOf = (prefixes: readonly string[]): string =>
  prefixes
    .join('')
    .replaceAll(/\/{2,}/g, '/')
    // A parameter with a pattern ends before a colon, which the router writes twice.
    .replaceAll(/:(\w+)\([^)]*\)(?:::?)?/g, '{$1}:');

/** Replaces the parameters of the path with values. */
export function fill(path: string, values: Readonly<Record<string, string>>): string {
  return path
    .replaceAll(/\/:(\w+)/g, (_match, name: string) => `/${encodeURIComponent(values[name] ?? 'x')}`)
    .replaceAll(/\{(\w+)\}/g, (_match, name: string) => encodeURIComponent(values[name] ?? 'x'))
    .replace('*', values['*'] ?? 'x');
}
