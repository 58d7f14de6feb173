import type { IncomingHttpHeaders } from 'node:http';
import { type GatewayError, SIGN_IN_HEADERS } from '#wire';
import { isResourcePath, pathOf, type Asked, type Resources } from './oauth/resources.ts';

interface ChallengeOptions {
  /** null: no issuer is configured. */
  readonly resources: Pick<Resources, 'metadataUrlOf'> | null;
  /** Scopes that a client should request for its token. Empty if they do not matter. */
  readonly scopes: readonly string[];
}

/**
 * The value of `WWW-Authenticate` for an error response. null for an error that another credential would not change.
 */
export type ChallengeFor = (
  request: Asked & { readonly headers: IncomingHttpHeaders },
  error: GatewayError,
) => string | null;

const CREDENTIALS = ['authorization', 'x-api-key', ...SIGN_IN_HEADERS] as const;

/**
 * Challenges in the form of RFC 6750 and RFC 9728. On paths of MCP and A2A they contain the URL of the resource's
 * metadata. `Bearer` comes first and has a parameter, because MCP clients ignore everything after another scheme.
 */
export function createChallenge({ resources, scopes }: ChallengeOptions): ChallengeFor {
  return (request, error) => {
    const original = error.headers?.['www-authenticate'] ?? '';
    const insufficient = error.code === 'permission_denied' && original.includes('insufficient_scope');
    if (error.code !== 'unauthorized' && !insufficient) return null;

    const had = CREDENTIALS.some((name) => request.headers[name] !== undefined);
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
