import type { FastifyPluginAsync } from 'fastify';
import type { Config } from '#config';
import type { Attempts } from '../attempts.ts';
import { createChallenge, type ChallengeFor } from '../challenge.ts';
import { createAccessTokens, type AccessTokens } from './access-tokens.ts';
import { createResources } from './resources.ts';
import { resourceRoutes } from './resource-routes.ts';

/** What of OAuth there is at a gateway. */
export interface ProtectedResource {
  /** null where the operator has named no issuer. */
  readonly accessTokens: AccessTokens | null;
  /** The metadata (RFC 9728); nothing where no issuer is named. Register it without a prefix. */
  readonly routes: FastifyPluginAsync;
  readonly challengeFor: ChallengeFor;
  /** What the operator should be told at the start; null is nothing. */
  readonly warning: string | null;
}

export interface ProtectedResourceOptions {
  readonly config: Pick<Config, 'publicUrl' | 'signIn' | 'oauth'>;
  readonly attempts: Attempts;
  readonly now: () => number;
  /** Milliseconds that only go on, whatever the machine's clock is set to. */
  readonly elapsed: () => number;
  /** Told why the issuer's keys could not be fetched. */
  readonly onError: (error: unknown) => void;
  /** Longest wait for the issuer. */
  readonly timeoutMs?: number;
}

/**
 * Loads what verifying tokens takes before it resolves, where there can be any. The issuer is not asked for
 * anything before the first one comes.
 */
export async function createProtectedResource({
  config,
  ...options
}: ProtectedResourceOptions): Promise<ProtectedResource> {
  const { issuer, audience, scopes, requiredScope, jwksUrl } = config.oauth;
  if (issuer === null)
    return {
      accessTokens: null,
      routes: async () => {},
      challengeFor: createChallenge({ resources: null, scopes: [] }),
      warning: null,
    };
  const { domains, skewMs } = config.signIn;
  const resources = createResources({ publicUrl: config.publicUrl, domains, audience });
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
