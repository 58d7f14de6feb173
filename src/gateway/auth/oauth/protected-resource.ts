import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyPluginAsync } from 'fastify';
import { CREDENTIAL_HEADERS, type OwnOrigin } from '#security';
import type { GatewayError } from '#errors';
import type { Config } from '#config';
import { createAccessTokens, type AccessTokens, type AccessTokensOptions } from './access-tokens.ts';
import { createResources, METADATA_PATH, pathOf, type Resources, isResourcePath, type UrlParts } from './resources.ts';

/** The gateway as an OAuth resource server. It accepts the tokens of one issuer. */
export interface ProtectedResource {
  /** null without a configured issuer. */
  readonly accessTokens: AccessTokens | null;
  /** The metadata (RFC 9728). No routes without an issuer. Register it without a prefix. */
  readonly routes: FastifyPluginAsync;
  readonly challengeFor: ChallengeFor;
  /** A warning for the operator at the start. null if there is no problem. */
  readonly warning: string | null;
}

interface ProtectedResourceOptions extends Pick<
  AccessTokensOptions,
  'attempts' | 'now' | 'elapsed' | 'onError' | 'timeoutMs'
> {
  readonly config: Pick<Config, 'publicUrl' | 'signIn' | 'oauth'>;
  readonly ownOrigin: OwnOrigin;
}

/**
 * Resolves when everything for the verification of tokens is loaded. The first request to the issuer is sent when the
 * first token comes.
 */
export async function createProtectedResource({
  config,
  ownOrigin,
  ...options
}: ProtectedResourceOptions): Promise<ProtectedResource> {
  const { issuer, audience, sharedAudience, scopes, requiredScope, jwksUrl } = config.oauth;
  if (issuer === null)
    return {
      accessTokens: null,
      routes: async () => {},
      challengeFor: createChallenge({ resources: null, scopes: [] }),
      warning: null,
    };
  const { domains, skewMs } = config.signIn;
  const resources = createResources({
    publicUrl: config.publicUrl,
    ownOrigin,
    domains,
    audience,
    shared: sharedAudience,
  });
  const supported = requiredScope === null ? scopes : [...new Set([requiredScope, ...scopes])];
  return {
    accessTokens: await createAccessTokens({ issuer, jwksUrl, requiredScope, resources, skewMs, ...options }),
    routes: resourceRoutes({ issuer, resources, scopes: supported }),
    challengeFor: createChallenge({ resources, scopes: requiredScope === null ? scopes : [requiredScope] }),
    warning: resources.isConfigured
      ? null
      : 'no access token can be for this gateway: set server.public_url, or oauth.audience',
  };
}

interface ResourceDeps {
  readonly issuer: string;
  readonly resources: Pick<Resources, 'resourceOf'>;
  readonly scopes: readonly string[];
}

const text = (description: string) => ({ type: 'string', description }) as const;
const texts = (description: string) => ({ type: 'array', items: { type: 'string' }, description }) as const;

const answer = {
  type: 'object',
  required: ['resource', 'authorization_servers', 'bearer_methods_supported', 'resource_name'],
  properties: {
    resource: text('The resource to request a token for'),
    authorization_servers: texts('Issuers of accepted tokens'),
    scopes_supported: texts('Scopes that a token may have'),
    bearer_methods_supported: texts('How the token is sent: always in a header'),
    resource_name: text('For people'),
  },
} as const;

/**
 * `GET /.well-known/oauth-protected-resource` (RFC 9728), also with the path of an MCP or A2A endpoint appended.
 * Public. Register it without a prefix.
 */
function resourceRoutes({ issuer, resources, scopes }: ResourceDeps): FastifyPluginAsync {
  return async (app) => {
    for (const path of [METADATA_PATH, `${METADATA_PATH}/*`]) {
      app.get(
        path,
        {
          schema: {
            summary: 'Show whose access tokens are accepted',
            description:
              'Metadata of a protected resource (RFC 9728): this gateway, or the endpoint of a path such as `/mcp` or `/a2a` at the end of the address. It exists only if the operator has set an issuer.',
            tags: ['Account'],
            security: [],
            hide: path !== METADATA_PATH,
            response: { 200: answer },
          },
        },
        (request, reply) => {
          const resource = resources.resourceOf(request, pathOf(request).slice(METADATA_PATH.length));
          if (resource === null) return reply.callNotFound();
          // Browser clients of other origins may read it, because it has no secrets.
          return reply.header('access-control-allow-origin', '*').send({
            resource,
            authorization_servers: [issuer],
            ...(scopes.length > 0 ? { scopes_supported: scopes } : {}),
            bearer_methods_supported: ['header'],
            resource_name: 'tollgate',
          });
        },
      );
    }
  };
}

interface ChallengeOptions {
  /** null: no issuer is configured. */
  readonly resources: Pick<Resources, 'metadataUrlOf'> | null;
  /** Scopes that a client should request for its token. Empty if they do not matter. */
  readonly scopes: readonly string[];
}

/**
 * The value of `WWW-Authenticate` for an error response. null for an error that another credential would not change.
 */
type ChallengeFor = (
  request: UrlParts & { readonly headers: IncomingHttpHeaders },
  error: GatewayError,
) => string | null;

/**
 * Challenges in the form of RFC 6750 and RFC 9728. On paths of MCP and A2A they contain the URL of the resource's
 * metadata. `Bearer` comes first and has a parameter, because MCP clients ignore everything after another scheme.
 */
function createChallenge({ resources, scopes }: ChallengeOptions): ChallengeFor {
  return (request, error) => {
    const original = error.headers?.['www-authenticate'] ?? '';
    const insufficient = error.code === 'permission_denied' && original.includes('insufficient_scope');
    if (error.code !== 'unauthorized' && !insufficient) return null;

    const had = CREDENTIAL_HEADERS.some((name) => request.headers[name] !== undefined);
    const parameters = ['realm="tollgate"'];
    if (insufficient) parameters.push('error="insufficient_scope"');
    else if (had) parameters.push('error="invalid_token"');
    if (resources !== null && isResourcePath(pathOf(request))) {
      const metadataUrl = resources.metadataUrlOf(request);
      if (scopes.length > 0) parameters.push(`scope="${scopes.join(' ')}"`);
      if (metadataUrl !== null) parameters.push(`resource_metadata="${metadataUrl}"`);
    }
    return `Bearer ${parameters.join(', ')}${original.includes('SIWx') ? ', SIWx' : ''}`;
  };
}
