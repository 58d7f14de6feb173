import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { GatewayError } from '#errors';
import { dialectOf, withoutEndSlashes } from './error-table.ts';
import { isHandshake, UPGRADE_REQUIRED, upgradeError } from './upgrades.ts';

/**
 * Answers requests without a route. The returned function tells whether the request has none: it has then sent the
 * answer, or throws its error. Call it before the body is read, because nothing else would read the body, and after the
 * hooks that set the common response headers.
 */
export function refuseUnknownRoutes(
  server: FastifyInstance,
): (request: FastifyRequest, reply: FastifyReply) => boolean {
  const { methodsOf, appendedIn, isAppended } = collectRoutes(server);
  const refuse = (request: FastifyRequest, reply: FastifyReply) => {
    const path = request.url.split('?')[0]!;
    const { methods, refusal, missing } = methodsOf(path);
    const tell = (error: GatewayError) => {
      if (refusal === null) throw error;
      const { status, headers, text } = refusal(error, request);
      return reply.code(status).headers(headers).type('application/json').send(text);
    };
    // What a client appends to a base URL may also fit a route that is meant for other clients.
    if (methods.length === 0 || methods.includes(request.method) || isAppended(path)) {
      const page = isVisit(request, path) ? missingPages.get(server) : undefined;
      if (page) return page(request, reply).catch((error: unknown) => void reply.send(error));
      const words =
        missing ??
        missingEndpoint(request.method, path, {
          exists: (other) => methodsOf(other).methods.length > 0,
          appendedIn,
        });
      return tell(new GatewayError('not_found', asAsked(words, request)));
    }
    if (isHandshake(request.raw)) return refuseHandshake(request, reply);
    const allow = methods.join(', ');
    if (request.method === 'OPTIONS') return reply.code(204).header('allow', allow).send();
    return tell(
      new GatewayError(
        'method_not_allowed',
        asAsked(`${path.slice(0, 200)} does not take ${request.method}. It takes ${allow}`, request),
        { headers: { allow } },
      ),
    );
  };
  server.setNotFoundHandler(refuse);
  return (request, reply) => {
    if (request.is404 || lacksItsName(request) || isForVisits(request)) {
      void refuse(request, reply);
      return true;
    }
    if (hasTooLongName(request)) throw nameTooLong();
    if (!isHandshake(request.raw)) return false;
    void refuseHandshake(request, reply);
    return true;
  };
}

/** A protocol that is not spoken at an address is refused by the code for that, which its clients understand. */
const refuseHandshake = (request: FastifyRequest, reply: FastifyReply) =>
  reply
    .code(UPGRADE_REQUIRED)
    .headers({ upgrade: 'HTTP/1.1', connection: 'upgrade' })
    .send(upgradeError(`${request.url.split('?', 1)[0]!.slice(0, 200)} takes no WebSockets. Send plain HTTP requests`));

/** Words with addresses below `/v1`, for a client that asked there: it would meet another dialect below `/api/v1`. */
const asAsked = (words: string, request: FastifyRequest): string =>
  dialectOf(request) === 'openai' ? words.replaceAll(' /api/v1/', ' /v1/').replace(/^\/api\/v1\//, '/v1/') : words;

/**
 * Whether a path ends with a slash, although its route continues with a name: `/models/`. The router takes it for an
 * empty name. Addresses of protocols have no slash at their end here, see rewrittenAddress.
 */
function lacksItsName(request: FastifyRequest): boolean {
  const { url } = request;
  const query = url.indexOf('?');
  if (url.charCodeAt((query === -1 ? url.length : query) - 1) !== SLASH) return false;
  return OF_NAMES.test(url) && /[:*][^/]*$/.test(request.routeOptions.url ?? '');
}

/** Whether only browsers have this path, and a program asks for it. */
const isForVisits = (request: FastifyRequest): boolean =>
  request.routeOptions.config.visitsOnly === true && !isVisit(request, request.url);

/** The longest name or id in a path. Wildcards, which hold whole paths, may be longer. */
const NAME_CHARS_MAX = 512;

function hasTooLongName({ url, params }: FastifyRequest): boolean {
  if (url.length <= NAME_CHARS_MAX) return false;
  const values = Object.entries((params ?? {}) as Readonly<Record<string, string>>);
  return values.some(([name, value]) => name !== '*' && value.length > NAME_CHARS_MAX);
}

const nameTooLong = () =>
  new GatewayError(
    'not_found',
    `Not found: a part of the address has more than ${NAME_CHARS_MAX} characters, and no name or id is that long`,
  );

const SLASH = 0x2f;

const OF_NAMES = /^\/(?:admin\/v1|models|tools|agents|images|videos|providers)\//;

type PageHandler = (request: FastifyRequest, reply: FastifyReply) => Promise<unknown>;

const missingPages = new WeakMap<FastifyInstance, PageHandler>();

/** `answer` gets the requests of browsers for pages that do not exist. Programs still get the error as JSON. */
export function answerMissingPages(server: FastifyInstance, answer: PageHandler): void {
  missingPages.set(server, answer);
}

/** Paths of programs. A person who opens one of them in a browser is looking at the API. */
const API_PATH = /^\/(?:api|v1|v1beta|mcp|a2a|health|metrics|assets|\.well-known)(?:\/|$)/;

/** Whether a browser shows the answer as a page. */
const isVisit = ({ method, headers }: FastifyRequest, path: string): boolean =>
  (method === 'GET' || method === 'HEAD') && headers.accept?.includes('text/html') === true && !API_PATH.test(path);

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
    /** The words of the 404 for a path that fits this route and has no methods, see `methodsAt`. */
    readonly missingAt?: (path: string) => string;
    /** Only browsers have this path. Programs get 404, as for a path that does not exist. */
    readonly visitsOnly?: true;
    /**
     * Clients append the path of this route to a base URL that people choose. For an unknown path that ends with it,
     * the 404 says where the route is. A function is for a path with a name in it.
     */
    readonly clientsAppend?: true | ((path: string) => boolean);
  }
}

interface RoutesOfPath {
  /** Sorted; empty for an unknown path. */
  readonly methods: readonly string[];
  readonly refusal: TellRefusal | null;
  /** The words of the 404, if the path has no methods; null for the usual ones. */
  readonly missing: string | null;
}

/** The routes of a server, for requests without one. */
interface KnownRoutes {
  methodsOf(path: string): RoutesOfPath;
  /** The address of the route whose path was appended to a wrong base; undefined if `path` ends with no such path. */
  appendedIn(path: string): string | undefined;
  /** Whether a `path` without a route fits the pattern of one that clients append. */
  isAppended(path: string): boolean;
}

/**
 * Records every route that is added from now on. Routes with constraints are left out, because they handle only some
 * requests of a path. The result is asked only for requests without a route, so it may try the patterns one after the
 * other.
 */
function collectRoutes(server: FastifyInstance): KnownRoutes {
  const routes = new Map<
    string,
    {
      readonly methods: Set<string>;
      readonly refusal: TellRefusal | null;
      readonly methodsAt: ((path: string) => readonly string[]) | null;
      readonly missingAt: ((path: string) => string) | null;
    }
  >();
  const below = new Map<string, TellRefusal>();
  const appended = new Map<string, string>();
  const appendedPatterns: (readonly [fits: (path: string) => boolean, url: string])[] = [];
  let patterns: ReadonlyMap<string, RegExp> | null = null;
  server.addHook('onRoute', ({ url, method, constraints, prefix, routePath, config }) => {
    // The route `*` handles the preflights of all paths, so it gives no information about one path.
    if (url === '*' || (constraints && Object.keys(constraints).length > 0)) return;
    if (config?.clientsAppend === true) appended.set(routePath, url);
    else if (config?.clientsAppend) appendedPatterns.push([config.clientsAppend, shownPath(url)]);
    // The root of a prefix is served with and without a slash at its end, but the hook reports only one of them.
    for (const each of prefix !== '' && (routePath === '' || routePath === '/') ? [prefix, `${prefix}/`] : [url]) {
      let route = routes.get(each);
      if (!route) {
        const { refusal = null, methodsAt = null, missingAt = null } = config ?? {};
        routes.set(each, (route = { methods: new Set(), refusal, methodsAt, missingAt }));
      }
      if (!config?.refusesMethod) for (const one of [method].flat()) route.methods.add(one);
      if (config?.refusal && config.refusesBelow)
        below.set(config.refusesBelow === true ? `${each}/` : `${prefix}${config.refusesBelow}/`, config.refusal);
    }
  });
  const methodsOf = (path: string): RoutesOfPath => {
    const methods = new Set<string>();
    let refusal: TellRefusal | null = null;
    let missing: string | null = null;
    // The patterns are made at the first unknown path, because a start does not need them. After the start no route is
    // added.
    patterns ??= new Map([...routes.keys()].map((url) => [url, patternOf(url)]));
    // A path that is written out is meant alone: `DELETE /videos/models` reaches `/videos/:id`, but deletes no models.
    const own = routes.get(path);
    const all = own !== undefined && own.methods.size > 0 ? [[path, own] as const] : routes;
    for (const [url, route] of all) {
      if (!patterns.get(url)?.test(path)) continue;
      refusal ??= route.refusal;
      missing ??= route.missingAt?.(path) ?? null;
      for (const method of route.methodsAt?.(path) ?? route.methods) methods.add(method);
    }
    for (const [start, tell] of below) if (path.startsWith(start)) refusal ??= tell;
    return { methods: [...methods].sort(), refusal, missing: methods.size === 0 ? missing : null };
  };
  const fitting = (path: string) => appendedPatterns.find(([fits]) => fits(path))?.[1];
  const appendedIn = (path: string): string | undefined => {
    const route = fitting(path);
    if (route !== undefined) return route;
    // `/chat/completions` ends with `/completions` too: the longest is meant.
    const ends = [...appended.keys()].filter((each) => path.endsWith(each));
    return appended.get(ends.reduce((one, other) => (other.length > one.length ? other : one), ''));
  };
  return { methodsOf, appendedIn, isAppended: (path) => fitting(path) !== undefined };
}

/** The parts of the address of a route that stand for other texts: a colon, a parameter with its pattern, the rest. */
const VARIABLE = /(::|:\w+(?:\([^)]*\))?|\*)/;

/**
 * A pattern for `/keys/:hash` or `/models/*` that matches like the router: a parameter ends at a slash, a wildcard
 * takes the rest.
 */
function patternOf(url: string): RegExp {
  const source = url
    .split(VARIABLE)
    .map((part) => {
      if (part === '*') return '.*';
      if (part === '::') return ':';
      return part.startsWith(':') ? '[^/]+' : part.replaceAll(/[\\^$.|?+()[\]{}]/g, '\\$&');
    })
    .join('');
  return new RegExp(`^${source}$`);
}

/** The address of a route as people read it: `/models/{model}:generateContent`. */
const shownPath = (url: string): string =>
  url
    .split(VARIABLE)
    .map((part) => (part === '::' ? ':' : part.startsWith(':') ? `{${/^:(\w+)/.exec(part)![1]}}` : part))
    .join('');

const NO_OAUTH =
  'OAuth clients do not register at this address. If programs can sign in at this gateway, /.well-known/oauth-authorization-server names the right one. Otherwise give the client an API key, as the header "Authorization: Bearer <key>"';

/**
 * The text of a 404 for an address that does not exist. `path`: without its query. `exists`: whether another path
 * exists. `appendedIn`: see KnownRoutes. Clients show the text to people who did not choose the address, because the
 * client built it from a base URL. MCP clients whose key does not work call `/register`, because they take the 401 as
 * an invitation to sign in.
 */
function missingEndpoint(
  method: string,
  path: string,
  { exists, appendedIn }: Pick<KnownRoutes, 'appendedIn'> & { readonly exists: (path: string) => boolean },
): string {
  if (path === '/register') return NO_OAUTH;
  const bare = withoutEndSlashes(path);
  const appended = appendedIn(bare);
  // What clients append is a page here: `/models` shows models to people.
  const isThere = bare !== '' && bare !== path && appended === undefined && exists(bare);
  if (isThere)
    return `No such endpoint: ${method} ${path.slice(0, 200)}. It is at ${bare.slice(0, 200)}, without the slash at its end`;
  const base = appended === undefined ? '' : ` It is at ${appended}: check the base URL of the client.`;
  return `No such endpoint: ${method} ${path.slice(0, 200)}.${base} See /docs`;
}
