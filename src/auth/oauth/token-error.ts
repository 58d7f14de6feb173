import { GatewayError } from '#wire';

/** The error for an invalid access token. `why` completes the sentence "it …". */
export function tokenError(why: string): GatewayError {
  return new GatewayError('unauthorized', `Invalid access token: it ${why}`, {
    headers: { 'www-authenticate': 'Bearer error="invalid_token"' },
  });
}

/** The error for a valid access token without the required scope. */
export function scopeError(scope: string): GatewayError {
  return new GatewayError(
    'permission_denied',
    `The access token does not have the scope ${scope}: ask for one that has it`,
    {
      headers: { 'www-authenticate': `Bearer error="insufficient_scope", scope="${scope}"` },
    },
  );
}
