import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyInstance } from 'fastify';
import type { GatewayError } from '#wire';

/** How a route's wire says an error that is the whole reply: JSON. */
type TellRefusal = (
  error: GatewayError,
  request: { readonly id: string; readonly headers: IncomingHttpHeaders },
) => {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
};

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The refusal of another method of this path; default the error of the chat wire. */
    readonly refusal?: TellRefusal;
    /** The refusal is also that of unknown paths below this one. */
    readonly refusesBelow?: boolean;
  }
}

/** The methods of a path. */
interface RoutesOfPath {
  /** Sorted; empty for an unknown path. */
  readonly methods: readonly string[];
  readonly refusal: TellRefusal | null;
}
type MethodsOfPath = (path: string) => RoutesOfPath;

/**
 * Notes every route that is added from now on. Routes that are for some requests of a path only are left out:
 * others may serve the rest of it. Asked only where nothing was found, so the patterns are tried one after the
 * other.
 */
export function collectMethods(server: FastifyInstance): MethodsOfPath {
  const routes = new Map<string, { readonly methods: Set<string>; readonly refusal: TellRefusal | null }>();
  const below = new Map<string, TellRefusal>();
  let patterns: ReadonlyMap<string, RegExp> | null = null;
  server.addHook('onRoute', ({ url, method, constraints, prefix, routePath, config }) => {
    // The one for preflights of every path says nothing of a path.
    if (url === '*' || (constraints && Object.keys(constraints).length > 0)) return;
    // The root of a prefix answers with a slash at its end and without; the hook hears of one.
    for (const each of prefix !== '' && (routePath === '' || routePath === '/') ? [prefix, `${prefix}/`] : [url]) {
      let route = routes.get(each);
      if (!route) routes.set(each, (route = { methods: new Set(), refusal: config?.refusal ?? null }));
      for (const one of [method].flat()) route.methods.add(one);
      if (config?.refusal && config.refusesBelow) below.set(`${each}/`, config.refusal);
    }
  });
  return (path) => {
    const found = new Set<string>();
    let refusal: TellRefusal | null = null;
    // Made when a path was first not found: a start has no use for them, and no route is added after it.
    patterns ??= new Map([...routes.keys()].map((url) => [url, patternOf(url)]));
    for (const [url, route] of routes) {
      if (!patterns.get(url)?.test(path)) continue;
      refusal ??= route.refusal;
      for (const method of route.methods) found.add(method);
    }
    for (const [start, tell] of below) if (path.startsWith(start)) refusal ??= tell;
    return { methods: [...found].sort(), refusal };
  };
}

/** `/keys/:hash` and `/models/*` as the router reads them: a name ends at a slash, a wildcard takes the rest. */
function patternOf(url: string): RegExp {
  const source = url
    .split(/(:\w+|\*)/)
    .map((part) =>
      part === '*' ? '.*' : part.startsWith(':') ? '[^/]+' : part.replaceAll(/[\\^$.|?+()[\]{}]/g, '\\$&'),
    )
    .join('');
  return new RegExp(`^${source}$`);
}
