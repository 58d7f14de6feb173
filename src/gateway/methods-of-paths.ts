import type { FastifyInstance } from 'fastify';

/** The methods that the routes of a path answer, sorted; none where there is no such path. */
export type MethodsOfPath = (path: string) => readonly string[];

/**
 * Notes every route that is added from now on. Routes that are for some requests of a path only are left out: others may serve the rest of it.
 * Asked only where nothing was found, so the patterns are tried one after the other.
 */
export function collectMethods(server: FastifyInstance): MethodsOfPath {
  const routes = new Map<string, { readonly pattern: RegExp; readonly methods: Set<string> }>();
  server.addHook('onRoute', ({ url, method, constraints, prefix, routePath }) => {
    // The one for preflights of every path says nothing of a path.
    if (url === '*' || (constraints && Object.keys(constraints).length > 0)) return;
    // The root of a prefix answers with a slash at its end and without; the hook hears of one.
    for (const each of prefix !== '' && (routePath === '' || routePath === '/') ? [prefix, `${prefix}/`] : [url]) {
      let route = routes.get(each);
      if (!route) routes.set(each, (route = { pattern: patternOf(each), methods: new Set() }));
      for (const one of [method].flat()) route.methods.add(one);
    }
  });
  return (path) => {
    const found = new Set<string>();
    for (const { pattern, methods } of routes.values()) if (pattern.test(path)) for (const method of methods) found.add(method);
    return [...found].sort();
  };
}

/** `/keys/:hash` and `/models/*` as the router reads them: a name ends at a slash, a wildcard takes the rest. */
function patternOf(url: string): RegExp {
  const source = url
    .split(/(:\w+|\*)/)
    .map((part) => (part === '*' ? '.*' : part.startsWith(':') ? '[^/]+' : part.replaceAll(/[\\^$.|?+()[\]{}]/g, '\\$&')))
    .join('');
  return new RegExp(`^${source}$`);
}
