import { SIGN_IN_HEADERS } from '#wire';
import { ACCOUNT_HEADER, MAX_COST_HEADER, PAYMENT_HEADERS, QUOTE_HEADER } from '#gateway';

/** Headers with credentials. */
const CREDENTIALS: readonly string[] = ['authorization', 'x-api-key', ...SIGN_IN_HEADERS];

/**
 * Headers of the request that are passed to the route of each entry. Those of a proxy are passed together with the
 * address of the connection's peer, so that a route sees the same client, host and protocol as this endpoint, and
 * trusts the same proxies. Headers about the body of this request are not passed.
 */
const INWARD: ReadonlySet<string> = new Set([
  ...CREDENTIALS,
  ...PAYMENT_HEADERS,
  ACCOUNT_HEADER,
  'host',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-proto',
  'a2a-extensions',
  'x-a2a-extensions',
  'origin',
  'user-agent',
  'traceparent',
  'x-session-id',
  'x-receipt',
  MAX_COST_HEADER,
  QUOTE_HEADER,
]);

/** Headers of a route's reply that are passed on with the reply to a single request. */
const OUTWARD = [
  'retry-after',
  'www-authenticate',
  'payment-required',
  'payment-response',
  'x-ratelimit-limit-requests',
  'x-ratelimit-remaining-requests',
  'x-ratelimit-reset-requests',
  'x-ratelimit-limit-tokens',
  'x-ratelimit-remaining-tokens',
  'x-ratelimit-reset-tokens',
  'x-generation-id',
  'x-cost-usd',
  'x-provider',
  'x-tollgate-dropped',
  'x-tollgate-wire',
  'x-max-tokens',
  'x-receipt',
  'idempotent-replayed',
] as const;

/**
 * Headers by lower-case name, with all values: a route can only refuse a repeated credential if it gets both values.
 */
export type Carried = Readonly<Record<string, readonly string[]>>;

/**
 * The headers of a request that are passed to its entries. `rawHeaders`: IncomingMessage.rawHeaders, with names and
 * values in alternation.
 */
export function carriedOf(rawHeaders: readonly string[]): Carried {
  const carried: Record<string, string[]> = {};
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]!.toLowerCase();
    if (INWARD.has(name)) (carried[name] ??= []).push(rawHeaders[at + 1]!);
  }
  return carried;
}

/** Whether a request has a credential. The routes check whether it is valid. */
export const hasCredential = (carried: Carried): boolean => CREDENTIALS.some((name) => Object.hasOwn(carried, name));

/** The headers of the route's reply that are passed on to the client. */
export function toldOf(headers: Readonly<Record<string, string>>): Record<string, string> {
  const told: Record<string, string> = {};
  for (const name of OUTWARD) {
    const value = headers[name];
    if (value !== undefined) told[name] = value;
  }
  return told;
}
