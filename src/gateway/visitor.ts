import { orElse } from '#wire';
import type { IncomingHttpHeaders } from 'node:http';
import { SIGN_IN_HEADERS } from '#security';
import { anonymousAt, type Authenticate, type Caller } from '#accounts';
import { webRequestOf } from '#http';

const CREDENTIALS = ['authorization', 'x-api-key', ...SIGN_IN_HEADERS] as const;

/** Whether a request has any credential, valid or not. */
export const hasCredentials = (headers: IncomingHttpHeaders): boolean =>
  CREDENTIALS.some((name) => headers[name] !== undefined) || webRequestOf(headers) !== undefined;

/** The caller of a request that needs no credential, see Pipeline.visitor. */
export function visitorOf(
  authenticate: Authenticate,
  headers: IncomingHttpHeaders,
  address: string,
): Caller | Promise<Caller> {
  // A caller with an invalid credential counts as a stranger here. Routes that need a credential report what is wrong
  // with it.
  const stranger = () => anonymousAt(address);
  if (!hasCredentials(headers)) return stranger();
  return orElse(() => authenticate(headers, address, true), stranger);
}
