import { GatewayError } from '#wire';

/** The error of an access token that is refused. `why` completes "it …". */
export function tokenError(why: string): GatewayError {
  return new GatewayError('unauthorized', `Invalid access token: it ${why}`, {
    headers: { 'www-authenticate': 'Bearer error="invalid_token"' },
  });
}

/** The error of a good access token without the scope. */
export function scopeError(scope: string): GatewayError {
  return new GatewayError(
    'permission_denied',
    `The access token does not have the scope ${scope}: ask for one that has it`,
    {
      headers: { 'www-authenticate': `Bearer error="insufficient_scope", scope="${scope}"` },
    },
  );
}
