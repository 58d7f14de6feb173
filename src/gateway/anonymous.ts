import type { IncomingHttpHeaders } from 'node:http';
import { GatewayError, networkOf, SIGN_IN_HEADERS } from '#wire';
import { ANONYMOUS_ACCOUNT, type Caller } from './call.ts';
import { webRequestOf } from './web-request.ts';

const CREDENTIALS = ['authorization', 'x-api-key', ...SIGN_IN_HEADERS] as const;

/** Whether a request says who makes it, rightly or wrongly. */
export const hasCredentials = (headers: IncomingHttpHeaders): boolean =>
  CREDENTIALS.some((name) => headers[name] !== undefined) || webRequestOf(headers) !== undefined;

/**
 * The caller of a request without a credential. What belongs to an account (sessions, places to listen, held calls)
 * belongs here to the network that it came from, so that strangers neither share it nor use each other's up.
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
  // What is wrong with a credential is said where one is needed.
  const stranger = () => anonymousAt(address);
  if (!hasCredentials(headers)) return stranger();
  try {
    const caller = authenticate(headers, address, true);
    return caller instanceof Promise ? caller.catch(stranger) : caller;
  } catch {
    return stranger();
  }
}

/** The error of what a caller without a credential may not do. */
export const needsCredential = (): GatewayError =>
  new GatewayError(
    'unauthorized',
    'This needs an account: send "Authorization: Bearer svc-sk-…" or "x-api-key: svc-sk-…", or sign in with a wallet',
    {
      headers: { 'www-authenticate': 'Bearer, SIWx' },
    },
  );
