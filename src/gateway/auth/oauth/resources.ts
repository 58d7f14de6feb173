import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyRequest } from 'fastify';
import { isLoopback, type OwnOrigin, parseHost } from '#security';
import { withoutEndSlashes } from '#http';

/** The parts of a request that show the URL that it was sent to. */
export type UrlParts = Pick<FastifyRequest, 'url' | 'protocol' | 'host'>;

/**
 * The protected resources (RFC 9728) of this gateway: one for each path of MCP and A2A, and one for the whole gateway.
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
}

export const METADATA_PATH = '/.well-known/oauth-protected-resource';

const RESOURCE_PATH = /^(?:\/api\/v1)?\/(?:mcp|a2a)(?:\/[A-Za-z0-9._~:%/-]{0,512})?$/;

/** Whether a path (without query) belongs to MCP or A2A. */
export function isResourcePath(path: string): boolean {
  return RESOURCE_PATH.test(path);
}

/** The path of a request, without the query. */
export function pathOf({ url }: Pick<UrlParts, 'url'>): string {
  return url.split('?', 1)[0]!;
}

const ASKED_PATH = Symbol('path of the request');
type PathHeaders = IncomingHttpHeaders & { [ASKED_PATH]?: string };

/**
 * Notes the path of a request for the check of an access token, which is for the resource at one path. The mark is a
 * symbol on the headers, because authentication gets only the headers, and no client can send a symbol.
 */
export function noteAskedPath(request: { readonly url: string; readonly headers: IncomingHttpHeaders }): void {
  // Tokens have dots. The many requests with a key need no mark.
  if (request.headers.authorization?.includes('.')) (request.headers as PathHeaders)[ASKED_PATH] = pathOf(request);
}

/** The path of a request. null if nobody noted it; then only a token for the whole gateway is accepted. */
export const askedPathOf = (headers: IncomingHttpHeaders): string | null =>
  (headers as PathHeaders)[ASKED_PATH] ?? null;

/**
 * A token's audience is compared with the configured names, never with the Host header. Otherwise a service that
 * received a user's token could use it here, with its own name as Host.
 */
export function createResources({ publicUrl, ownOrigin, domains, audience, shared }: ResourcesOptions): Resources {
  const origins = new Set(
    domains.map((domain) => `${isLoopback(parseHost(domain)?.name ?? '') ? 'http' : 'https'}://${domain}`),
  );
  if (publicUrl !== null) origins.add(new URL(publicUrl).origin);

  /** The path of an audience that is meant for this gateway; `/` for the whole gateway. null for any other audience. */
  const pathIn = (text: string): string | null => {
    if (text === audience) return '/';
    const url = URL.parse(text);
    if (!url || !origins.has(url.origin) || url.username !== '' || url.password !== '') return null;
    const { pathname, search, hash } = url;
    return search === '' && hash === '' && (pathname === '/' || isResourcePath(pathname)) ? pathname : null;
  };

  return {
    isConfigured: audience !== null || origins.size > 0,

    resourceOf(request, path) {
      const origin = ownOrigin(request);
      return origin !== null && (path === '' || isResourcePath(path)) ? origin + path : null;
    },

    metadataUrlOf(request) {
      const origin = ownOrigin(request);
      if (origin === null) return null;
      const path = pathOf(request);
      return origin + METADATA_PATH + (isResourcePath(path) ? path : '');
    },

    isAudience: (text) => pathIn(text) !== null,

    isFor(text, path) {
      const audiencePath = pathIn(text);
      if (audiencePath === null) return false;
      if (shared || audiencePath === '/') return true;
      if (path === null) return false;
      const [one, place] = [plainPath(audiencePath), plainPath(path)];
      if (ALL.has(one) && VIDEO_FILE.test(path)) return true;
      if (!isResourcePath(path)) return false;
      return placeOf(one) === placeOf(place) || (ALL.has(one) && place.startsWith(`${one}/`));
    },
  };
}

/** The addresses of all tools and of all agents. */
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

/** The address of the tool service or the agent at a plain path. */
const placeOf = (path: string): string => (path.startsWith('/a2a/') ? path.replace(ROUTE, '') : path);
