import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyInstance } from 'fastify';
import type { GatewayError } from '#wire';

/** Formats an error as the whole reply, as JSON in the format of the route's protocol. */
type TellRefusal = (
  error: GatewayError,
  request: { readonly id: string; readonly headers: IncomingHttpHeaders; readonly originalUrl: string },
) => {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
};

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The route only refuses its method, in its own words. So the path does not have the method. */
    readonly refusesMethod?: true;
    /** Formats the refusal of other methods of this path. Default: the error format of the chat API. */
    readonly refusal?: TellRefusal;
    /**
     * The same format is used for unknown paths below this one, or below another path of the same plugin (such as
     * `/image`).
     */
    readonly refusesBelow?: true | `/${string}`;
    /** Returns the methods of one path of a wildcard. Default: those of its routes. */
    readonly methodsAt?: (path: string) => readonly string[];
    /** Only browsers have this path. Programs get 404, as for a path that does not exist. */
    readonly visitsOnly?: true;
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
 * Records every route that is added from now on. Routes with constraints are left out, because they handle only some
 * requests of a path. The returned function is called only for requests without a route, so it may try the patterns one
 * after the other.
 */
export function collectMethods(server: FastifyInstance): MethodsOfPath {
  const routes = new Map<
    string,
    {
      readonly methods: Set<string>;
      readonly refusal: TellRefusal | null;
      readonly methodsAt: ((path: string) => readonly string[]) | null;
    }
  >();
  const below = new Map<string, TellRefusal>();
  let patterns: ReadonlyMap<string, RegExp> | null = null;
  server.addHook('onRoute', ({ url, method, constraints, prefix, routePath, config }) => {
    // The route `*` handles the preflights of all paths, so it gives no information about one path.
    if (url === '*' || (constraints && Object.keys(constraints).length > 0)) return;
    // The root of a prefix is served with and without a slash at its end, but the hook reports only one of them.
    for (const each of prefix !== '' && (routePath === '' || routePath === '/') ? [prefix, `${prefix}/`] : [url]) {
      let route = routes.get(each);
      if (!route) {
        const { refusal = null, methodsAt = null } = config ?? {};
        routes.set(each, (route = { methods: new Set(), refusal, methodsAt }));
      }
      if (!config?.refusesMethod) for (const one of [method].flat()) route.methods.add(one);
      if (config?.refusal && config.refusesBelow)
        below.set(config.refusesBelow === true ? `${each}/` : `${prefix}${config.refusesBelow}/`, config.refusal);
    }
  });
  return (path) => {
    const found = new Set<string>();
    let refusal: TellRefusal | null = null;
    // The patterns are made at the first unknown path, because a start does not need them. After the start no route is
    // added.
    patterns ??= new Map([...routes.keys()].map((url) => [url, patternOf(url)]));
    // A path that is written out is meant alone: `DELETE /videos/models` reaches `/videos/:id`, but deletes no models.
    const own = routes.get(path);
    const all = own !== undefined && own.methods.size > 0 ? [[path, own] as const] : routes;
    for (const [url, route] of all) {
      if (!patterns.get(url)?.test(path)) continue;
      refusal ??= route.refusal;
      for (const method of route.methodsAt?.(path) ?? route.methods) found.add(method);
    }
    for (const [start, tell] of below) if (path.startsWith(start)) refusal ??= tell;
    return { methods: [...found].sort(), refusal };
  };
}

/**
 * A pattern for `/keys/:hash` or `/models/*` that matches like the router: a parameter ends at a slash, a wildcard
 * takes the rest.
 */
function patternOf(url: string): RegExp {
  const source = url
    .split(/(:\w+|\*)/)
    .map((part) =>
      part === '*' ? '.*' : part.startsWith(':') ? '[^/]+' : part.replaceAll(/[\\^$.|?+()[\]{}]/g, '\\$&'),
    )
    .join('');
  return new RegExp(`^${source}$`);
}
