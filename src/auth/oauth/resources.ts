import type { FastifyRequest } from 'fastify';
import { isLoopback, parseHost } from '#wire';

/** The parts of a request that show the URL that it was sent to. */
export type Asked = Pick<FastifyRequest, 'url' | 'protocol' | 'host'>;

/**
 * The protected resources (RFC 9728) of this gateway: one for each path of MCP and A2A, and one for the whole gateway.
 */
export interface Resources {
  /**
   * The identifier of the resource at `path`, with the origin that the request was sent to. null for a path without a
   * resource, and for an invalid host.
   */
  resourceOf(request: Asked, path: string): string | null;
  /** The URL of the metadata of a request's resource. null for an invalid host. */
  metadataUrlOf(request: Asked): string | null;
  /** Whether a token for this audience is meant for this gateway. */
  isAudience(audience: string): boolean;
  /** False if neither an origin nor an audience of the gateway is configured. Then no token can be meant for it. */
  readonly named: boolean;
}

interface ResourcesOptions {
  readonly publicUrl: string | null;
  /** Hosts of this gateway, with a port unless it is the scheme's default. */
  readonly domains: readonly string[];
  /** A further accepted audience. null: no further one. */
  readonly audience: string | null;
}

export const METADATA_PATH = '/.well-known/oauth-protected-resource';

const RESOURCE_PATH = /^(?:\/api\/v1)?\/(?:mcp|a2a)(?:\/[A-Za-z0-9._~:%/-]{0,512})?$/;

/** Whether a path (without query) belongs to MCP or A2A. */
export function isResourcePath(path: string): boolean {
  return RESOURCE_PATH.test(path);
}

/** The path of a request, without the query. */
export function pathOf({ url }: Pick<Asked, 'url'>): string {
  return url.split('?', 1)[0]!;
}

/**
 * A token's audience is compared with the configured names, never with the Host header. Otherwise a service that
 * received a user's token could use it here, with its own name as Host.
 */
export function createResources({ publicUrl, domains, audience }: ResourcesOptions): Resources {
  const origins = new Set(
    domains.map((domain) => `${isLoopback(parseHost(domain)?.name ?? '') ? 'http' : 'https'}://${domain}`),
  );
  if (publicUrl !== null) origins.add(new URL(publicUrl).origin);

  // The host is validated, because it goes into a quoted value of a response header, which a quote in the host would
  // end.
  const originOf = ({ protocol, host }: Asked): string | null =>
    publicUrl ??
    (parseHost(host) === null
      ? null
      : (URL.parse(`${protocol === 'https' ? 'https' : 'http'}://${host}`)?.origin ?? null));

  return {
    named: audience !== null || origins.size > 0,

    resourceOf(request, path) {
      const origin = originOf(request);
      return origin !== null && (path === '' || isResourcePath(path)) ? origin + path : null;
    },

    metadataUrlOf(request) {
      const origin = originOf(request);
      if (origin === null) return null;
      const path = pathOf(request);
      return origin + METADATA_PATH + (isResourcePath(path) ? path : '');
    },

    isAudience(text) {
      if (text === audience) return true;
      const url = URL.parse(text);
      if (!url || !origins.has(url.origin) || url.username !== '' || url.password !== '') return false;
      return url.search === '' && url.hash === '' && (url.pathname === '/' || isResourcePath(url.pathname));
    },
  };
}
