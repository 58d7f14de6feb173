import { GatewayError } from '#wire';

/** An access token that does not open this gateway; `why` completes "it …". */
export function tokenError(why: string): GatewayError {
  return new GatewayError('unauthorized', `Invalid access token: it ${why}`, {
    headers: { 'www-authenticate': 'Bearer error="invalid_token"' },
  });
}

/** A good access token that may not do this. */
export function scopeError(scope: string): GatewayError {
  return new GatewayError(
    'permission_denied',
    `The access token does not have the scope ${scope}: ask for one that has it`,
    {
      headers: { 'www-authenticate': `Bearer error="insufficient_scope", scope="${scope}"` },
    },
  );
}
