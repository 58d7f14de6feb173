import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyPluginAsync } from 'fastify';
import { CREDENTIAL_HEADERS, type OwnOrigin } from '#security';
import type { GatewayError } from '#errors';
import type { Config } from '#config';
import { createAccessTokens, type AccessTokens, type AccessTokensOptions } from './access-tokens.ts';
import { createDpopProofs, DPOP_ALGORITHMS, type DpopProofsOptions } from './dpop-proof.ts';
import { createOwnTokens, type OwnTokens, type OwnTokensOptions } from './own-tokens.ts';
import {
  createResources,
  METADATA_PATH,
  type Resources,
  resourcePathOf,
  type UrlParts,
  writtenPathOf,
} from './resources.ts';

/**
 * The gateway as an OAuth resource server. It accepts the tokens of its own authorization server and of one issuer
 * elsewhere.
 */
export interface ProtectedResource {
  readonly accessTokens: AccessTokens | null;
  readonly ownTokens: OwnTokens | null;
  readonly resources: Resources;
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
  /** The gateway's own authorization server. null or absent: it has none. */
  readonly own?: OwnAuthorization | null;
}

interface OwnAuthorization extends Pick<OwnTokensOptions, 'find'>, Pick<DpopProofsOptions, 'useOnce'> {
  /** Its issuer. null before the gateway listens, if that decides. */
  readonly issuer: () => string | null;
}

/** The one scope of the gateway's own tokens. What a program may do is in the limits of its grant. */
export const OWN_SCOPE = 'call';

/**
 * Resolves when everything for the verification of tokens is loaded. The first request to the issuer is sent when the
 * first token comes.
 */
export async function createProtectedResource({
  config,
  ownOrigin,
  own = null,
  ...options
}: ProtectedResourceOptions): Promise<ProtectedResource> {
  const { issuer, audience, sharedAudience, scopes, requiredScope, jwksUrl } = config.oauth;
  const { domains, skewMs } = config.signIn;
  const resources = createResources({
    publicUrl: config.publicUrl,
    ownOrigin,
    domains,
    audience,
    shared: sharedAudience,
    ownIssuer: own?.issuer ?? (() => null),
  });
  const ownScopes = own === null ? [] : [OWN_SCOPE];
  const isClosed = issuer === null && own === null;
  const { attempts, now } = options;
  return {
    accessTokens:
      issuer === null
        ? null
        : await createAccessTokens({ issuer, jwksUrl, requiredScope, resources, skewMs, ...options }),
    ownTokens:
      own === null
        ? null
        : createOwnTokens({
            find: own.find,
            resources,
            checkProof: createDpopProofs({ resources, useOnce: own.useOnce, now }),
            attempts,
            now,
          }),
    resources,
    routes: isClosed
      ? async () => {}
      : resourceRoutes({
          issuers: () => [own?.issuer() ?? null, issuer].filter((one) => one !== null),
          resources,
          scopes: [...new Set([...ownScopes, ...(requiredScope === null ? [] : [requiredScope]), ...scopes])],
          dpop: own !== null,
        }),
    challengeFor: createChallenge({
      resources: isClosed ? null : resources,
      scopes: [...ownScopes, ...(requiredScope === null ? scopes : [requiredScope])],
      dpop: own !== null,
    }),
    warning:
      issuer !== null && !resources.isConfigured
        ? 'no access token can be for this gateway: set server.public_url, or oauth.audience'
        : null,
  };
}

interface ResourceDeps {
  readonly issuers: () => readonly string[];
  readonly resources: Pick<Resources, 'resourceOf'>;
  readonly scopes: readonly string[];
  readonly dpop: boolean;
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
    dpop_signing_alg_values_supported: texts(
      'Algorithms of proofs, for tokens that are bound to a key of their client',
    ),
    resource_name: text('For people'),
  },
} as const;

/**
 * `GET /.well-known/oauth-protected-resource` (RFC 9728), also with the path of an MCP or A2A endpoint appended.
 * Public. Register it without a prefix.
 */
function resourceRoutes({ issuers, resources, scopes, dpop }: ResourceDeps): FastifyPluginAsync {
  return async (app) => {
    for (const path of [METADATA_PATH, `${METADATA_PATH}/*`]) {
      app.get(
        path,
        {
          config: { anyPage: true },
          schema: {
            summary: 'Show whose access tokens are accepted',
            description:
              'Metadata of a protected resource (RFC 9728): this gateway, or the endpoint of a path such as `/mcp` or `/a2a` at the end of the address. It exists only if the gateway takes access tokens.',
            tags: ['Account'],
            security: [],
            hide: path !== METADATA_PATH,
            response: { 200: answer },
          },
        },
        (request, reply) => {
          const resource = resources.resourceOf(request, writtenPathOf(request).slice(METADATA_PATH.length));
          if (resource === null) return reply.callNotFound();
          return reply.send({
            resource,
            authorization_servers: issuers(),
            ...(scopes.length > 0 ? { scopes_supported: scopes } : {}),
            bearer_methods_supported: ['header'],
            ...(dpop ? { dpop_signing_alg_values_supported: DPOP_ALGORITHMS } : {}),
            resource_name: 'tollgate',
          });
        },
      );
    }
  };
}

interface ChallengeOptions {
  /** null: no access tokens are accepted. */
  readonly resources: Pick<Resources, 'metadataUrlOf'> | null;
  /** Scopes that a client should request for its token. Empty if they do not matter. */
  readonly scopes: readonly string[];
  readonly dpop: boolean;
}

/**
 * The value of `WWW-Authenticate` for an error response. null for an error that another credential would not change.
 */
export type ChallengeFor = (
  request: UrlParts & { readonly headers: IncomingHttpHeaders },
  error: GatewayError,
) => string | null;

/**
 * Challenges in the form of RFC 6750 and RFC 9728. On paths of MCP, A2A and the API they contain the URL of the
 * resource's metadata. `Bearer` comes first and has a parameter, because MCP clients ignore everything after another
 * scheme.
 */
function createChallenge({ resources, scopes, dpop }: ChallengeOptions): ChallengeFor {
  return (request, error) => {
    const original = error.headers?.['www-authenticate'] ?? '';
    const insufficient = error.code === 'permission_denied' && original.includes('insufficient_scope');
    if (error.code !== 'unauthorized' && !insufficient) return null;

    const had = CREDENTIAL_HEADERS.some((name) => request.headers[name] !== undefined);
    // RFC 9449 section 7.1: the error belongs to the scheme that the client used.
    const proven = had && /^dpop /i.test(request.headers.authorization ?? '');
    const parameters = ['realm="tollgate"'];
    if (insufficient) parameters.push('error="insufficient_scope"');
    else if (had && !proven) parameters.push('error="invalid_token"');
    if (resources !== null && resourcePathOf(writtenPathOf(request)) !== null) {
      const metadataUrl = resources.metadataUrlOf(request);
      if (scopes.length > 0) parameters.push(`scope="${scopes.join(' ')}"`);
      if (metadataUrl !== null) parameters.push(`resource_metadata="${metadataUrl}"`);
    }
    const others = [
      ...(dpop && resources !== null ? [dpopChallenge(proven ? original : null)] : []),
      ...(original.includes('SIWx') ? ['SIWx'] : []),
    ];
    return [`Bearer ${parameters.join(', ')}`, ...others].join(', ');
  };
}

/** `original`: the header of the error of a request with this scheme; null for another request. */
function dpopChallenge(original: string | null): string {
  const algorithms = `algs="${DPOP_ALGORITHMS.join(' ')}"`;
  if (original === null) return `DPoP ${algorithms}`;
  return `DPoP error="${original.includes('invalid_dpop_proof') ? 'invalid_dpop_proof' : 'invalid_token'}", ${algorithms}`;
}
