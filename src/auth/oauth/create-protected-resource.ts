import type { FastifyPluginAsync } from 'fastify';
import type { OwnOrigin } from '#wire';
import type { Config } from '#config';
import { createChallenge, type ChallengeFor } from '../challenge.ts';
import { createAccessTokens, type AccessTokens, type AccessTokensOptions } from './access-tokens.ts';
import { createResources } from './resources.ts';
import { resourceRoutes } from './resource-routes.ts';

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
    warning: resources.named
      ? null
      : 'no access token can be for this gateway: set server.public_url, or oauth.audience',
  };
}
