import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyRequest } from 'fastify';
import { isLoopback, type OwnOrigin, parseHost } from '#security';
import { withoutEndSlashes } from '#http';

/** Clients compare a resource with the address that they asked, so it is written as they wrote that. */
export type UrlParts = Pick<FastifyRequest, 'originalUrl' | 'protocol' | 'host'>;

/**
 * The protected resources (RFC 9728) of this gateway: one for each path of MCP and A2A, one for the API, one for the
 * whole gateway.
 */
export interface Resources {
  /**
   * The identifier of the resource at `path`, with the gateway's own origin. null for a path without a resource, and
   * for a host that may be a stranger's.
   */
  resourceOf(request: UrlParts, path: string): string | null;
  /** The URL of the metadata of a request's resource. null for a host that may be a stranger's. */
  metadataUrlOf(request: UrlParts): string | null;
  /** Whether a token for this audience is meant for this gateway. */
  isAudience(audience: string): boolean;
  /**
   * Whether a token for this audience is meant for the resource at `path`; null for a request to no resource. A token
   * for the whole gateway is for every path, and one for all tools (`/mcp`) or all agents (`/a2a`) is for each of them,
   * and for the files of videos, because answers there link to them.
   */
  isFor(audience: string, path: string | null): boolean;
  /** The addresses below `/a2a/` that a token for these audiences is for; null if it is for more. See Caller.agents. */
  agentsOf(audiences: readonly string[]): readonly string[] | null;
  /** The path of the resource of an audience; `/` for the whole gateway. null for an audience of another gateway. */
  pathOf(audience: string): string | null;
  /** Whether this is an origin of the gateway. */
  isOrigin(origin: string): boolean;
  /** False if neither an origin nor an audience of the gateway is configured. Then no token can be meant for it. */
  readonly isConfigured: boolean;
}

interface ResourcesOptions {
  readonly publicUrl: string | null;
  readonly ownOrigin: OwnOrigin;
  /** Hosts of this gateway, with a port unless it is the scheme's default. */
  readonly domains: readonly string[];
  /** A further accepted audience. null: no further one. */
  readonly audience: string | null;
  /** A token for any resource of the gateway is accepted at all of it. */
  readonly shared: boolean;
  /** The issuer of the gateway's own authorization server, once it listens. */
  readonly ownIssuer?: () => string | null;
}

export const METADATA_PATH = '/.well-known/oauth-protected-resource';

const RESOURCE_PATH = /^(?:\/api\/v1)?\/(?:mcp|a2a)(?:\/[A-Za-z0-9._~:%/-]{0,512})?$/;

const isProtocolPath = (path: string): boolean => RESOURCE_PATH.test(path);

/**
 * The resource of everything that is neither MCP nor A2A: models, videos, the account. `/v1` is a part of it, and so
 * are other versions.
 */
const API_PATH = '/api/v1';
/** Google's clients ask below `/v1beta`, Cohere's below `/v2`. */
const OF_API = /^(?:\/api)?\/v\d\w*(?:\/|$)/;

/** The path of the resource that a path (without query) belongs to; `` for the whole gateway, null for none. */
export function resourcePathOf(path: string): string | null {
  if (path === '' || isProtocolPath(path)) return path;
  return OF_API.test(path) ? API_PATH : null;
}

export const pathOf = ({ url }: Pick<FastifyRequest, 'url'>): string => url.split('?', 1)[0]!;

/** The path as the client wrote it, without its query. */
export const writtenPathOf = ({ originalUrl }: Pick<UrlParts, 'originalUrl'>): string => originalUrl.split('?', 1)[0]!;

/** The request that an access token is checked against: it is for one resource, and its proof for one request. */
type AskedRequest = Pick<FastifyRequest, 'url' | 'originalUrl' | 'method'>;

const ASKED = Symbol('request of a token');
type AskedHeaders = IncomingHttpHeaders & { [ASKED]?: AskedRequest };

/**
 * Notes a request for the check of its access token. The mark is a symbol on the headers, because authentication gets
 * only the headers, and no client can send a symbol.
 */
export function noteAsked(request: AskedRequest & { readonly headers: IncomingHttpHeaders }): void {
  const { authorization } = request.headers;
  // The many requests with a key need no mark.
  if (authorization !== undefined && !authorization.startsWith('svc-', 'Bearer '.length))
    (request.headers as AskedHeaders)[ASKED] = request;
}

/** undefined if nobody noted the request; then only a token for the whole gateway is accepted. */
export const askedOf = (headers: IncomingHttpHeaders): AskedRequest | undefined => (headers as AskedHeaders)[ASKED];

/**
 * A token's audience is compared with the configured names, never with the Host header. Otherwise a service that
 * received a user's token could use it here, with its own name as Host.
 */
export function createResources({
  publicUrl,
  ownOrigin,
  domains,
  audience,
  shared,
  ownIssuer = () => null,
}: ResourcesOptions): Resources {
  const origins = new Set(
    domains.map((domain) => `${isLoopback(parseHost(domain)?.name ?? '') ? 'http' : 'https'}://${domain}`),
  );
  if (publicUrl !== null) origins.add(new URL(publicUrl).origin);
  const isOrigin = (origin: string): boolean => origins.has(origin) || isSameMachine(origin, ownIssuer());

  /** The path of an audience that is meant for this gateway; `/` for the whole gateway. null for any other audience. */
  const pathIn = (text: string): string | null => {
    if (text === audience) return '/';
    const url = URL.parse(text);
    if (!url || !isOrigin(url.origin) || url.username !== '' || url.password !== '') return null;
    const { pathname, search, hash } = url;
    // A text such as /mcp/acme/tools/../../.. would be read as one thing by a person and as another one here.
    if (pathname !== writtenPath(text)) return null;
    const isResource = pathname === '/' || pathname === API_PATH || isProtocolPath(pathname);
    return search === '' && hash === '' && isResource ? pathname : null;
  };

  return {
    isConfigured: audience !== null || origins.size > 0,

    resourceOf(request, path) {
      const origin = ownOrigin(request);
      return origin !== null && resourcePathOf(path) === path ? origin + path : null;
    },

    metadataUrlOf(request) {
      const origin = ownOrigin(request);
      if (origin === null) return null;
      return origin + METADATA_PATH + (resourcePathOf(writtenPathOf(request)) ?? '');
    },

    isAudience: (text) => pathIn(text) !== null,
    pathOf: pathIn,
    agentsOf(audiences) {
      const paths = audiences.map((audience) => plainPath(pathIn(audience) ?? ''));
      if (shared || !paths.every((path) => path.startsWith(BELOW_AGENTS))) return null;
      return paths.map((path) => path.slice(BELOW_AGENTS.length));
    },
    isOrigin,

    isFor(text, path) {
      const audiencePath = pathIn(text);
      if (audiencePath === null) return false;
      if (shared || audiencePath === '/') return true;
      if (path === null) return false;
      const [one, place] = [plainPath(audiencePath), plainPath(path)];
      if (ALL.has(one) && VIDEO_FILE.test(path)) return true;
      if (audiencePath === API_PATH) return resourcePathOf(path) === API_PATH;
      if (!isProtocolPath(path)) return false;
      return placeOf(one) === placeOf(place) || (ALL.has(one) && place.startsWith(`${one}/`));
    },
  };
}

/** The path of an address as it is written, without a query and a fragment. */
function writtenPath(address: string): string {
  const start = address.indexOf('/', address.indexOf('//') + 2);
  return start === -1 ? '/' : address.slice(start).replace(/[?#].*/s, '');
}

/** Whether two origins are one port of this machine, by any of its names. */
function isSameMachine(origin: string, issuer: string | null): boolean {
  if (issuer === null || origin === issuer) return origin === issuer;
  const [one, other] = [URL.parse(origin), URL.parse(issuer)];
  if (one?.protocol !== other?.protocol || one?.port !== other?.port) return false;
  return isLoopback(one?.hostname ?? '') && isLoopback(other?.hostname ?? '');
}

const ALL: ReadonlySet<string> = new Set(['/mcp', '/a2a']);

/**
 * The address of a video's file, which can only be read. Tools and agents that make videos answer with it, and their
 * client has no other token to fetch it with.
 */
const VIDEO_FILE = /^\/api\/v1\/videos\/[^/]+\/content$/;

/** The routes of HTTP+JSON below the address of an agent. */
const ROUTE = /(?:\/v1)?\/(?:message:[a-z]+|tasks(?:\/[^]*)?|card|extendedAgentCard)$/i;

/** A path without `/api/v1`, below which the same addresses are, and without slashes at its end. */
const plainPath = (path: string): string => withoutEndSlashes(path).replace(/^\/api\/v1(?=\/)/, '');

const BELOW_AGENTS = '/a2a/';

/**
 * The address of the tool service or the agent at a plain path. Of an agent whose name ends like a route it is that of
 * another one: see Resources.agentsOf.
 */
const placeOf = (path: string): string => (path.startsWith(BELOW_AGENTS) ? path.replace(ROUTE, '') : path);

/** The agent of an address below `/a2a/`; empty for a route of all agents. */
export function agentAt(address: string, isAgent: (name: string) => boolean): string {
  const name = decoded(address);
  return isAgent(name) ? name : `/${name}`.replace(ROUTE, '').slice(1);
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
