import type { IncomingHttpHeaders } from 'node:http';
import { GatewayError, networkOf, SIGN_IN_HEADERS } from '#wire';
import { ANONYMOUS_ACCOUNT, type Caller } from './call.ts';
import { webRequestOf } from './server/request-context.ts';

const CREDENTIALS = ['authorization', 'x-api-key', ...SIGN_IN_HEADERS] as const;

/** Whether a request has any credential, valid or not. */
export const hasCredentials = (headers: IncomingHttpHeaders): boolean =>
  CREDENTIALS.some((name) => headers[name] !== undefined) || webRequestOf(headers) !== undefined;

/**
 * The caller of a request without a credential. Things that belong to an account (sessions, places to listen, held
 * calls) belong to the client's network instead, so strangers neither share them nor use up each other's.
 */
export function anonymousAt(address: string): Caller {
  const from = networkOf(address);
  return { account: `${ANONYMOUS_ACCOUNT}:${from}`, key: null, wallet: null, anonymous: { from } };
}

/** See Pipeline.visitor. */
export function visitorOf(
  authenticate: (headers: IncomingHttpHeaders, address: string, calls: boolean) => Caller | Promise<Caller>,
  headers: IncomingHttpHeaders,
  address: string,
): Caller | Promise<Caller> {
  // A caller with an invalid credential counts as a stranger here. Routes that need a credential report what is wrong
  // with it.
  const stranger = () => anonymousAt(address);
  if (!hasCredentials(headers)) return stranger();
  try {
    const caller = authenticate(headers, address, true);
    return caller instanceof Promise ? caller.catch(stranger) : caller;
  } catch {
    return stranger();
  }
}

/** The error for a request that needs a credential and has none. */
export const needsCredential = (): GatewayError =>
  new GatewayError(
    'unauthorized',
    'This needs an account: send "Authorization: Bearer svc-sk-…" or "x-api-key: svc-sk-…", or sign in with a wallet',
    {
      headers: { 'www-authenticate': 'Bearer, SIWx' },
    },
  );
