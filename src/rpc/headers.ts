import { SIGN_IN_HEADERS } from '#wire';
import { ACCOUNT_HEADER, MAX_COST_HEADER, PAYMENT_HEADERS, QUOTE_HEADER } from '#gateway';

/** Headers that say who calls. */
const CREDENTIALS: readonly string[] = ['authorization', 'x-api-key', ...SIGN_IN_HEADERS];

/**
 * Headers of the request that each entry carries to its door. Not among them: X-Forwarded-For and its like, since
 * the address of the client is passed by itself and a door must not believe a second word on it; and what speaks of
 * this request's own body.
 */
const INWARD: ReadonlySet<string> = new Set([
  ...CREDENTIALS,
  ...PAYMENT_HEADERS,
  ACCOUNT_HEADER,
  'host',
  'origin',
  'user-agent',
  'traceparent',
  'x-session-id',
  'x-receipt',
  MAX_COST_HEADER,
  QUOTE_HEADER,
]);

/** Headers of a door's reply that the reply to a single request carries on. */
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
  'x-receipt',
  'idempotent-replayed',
] as const;

/**
 * By name in lower case, every value: a door refuses a credential that came twice, which it can only if it sees both.
 */
export type Carried = Readonly<Record<string, readonly string[]>>;

/**
 * The headers of a request that its entries carry. `rawHeaders` is IncomingMessage.rawHeaders, names and values by
 * turns.
 */
export function carriedOf(rawHeaders: readonly string[]): Carried {
  const carried: Record<string, string[]> = {};
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]!.toLowerCase();
    if (INWARD.has(name)) (carried[name] ??= []).push(rawHeaders[at + 1]!);
  }
  return carried;
}

/** Whether a request says who calls; whether that is true is the doors' to judge. */
export const hasCredential = (carried: Carried): boolean => CREDENTIALS.some((name) => Object.hasOwn(carried, name));

/** The headers of the door's reply that the client gets. */
export function toldOf(headers: Readonly<Record<string, string>>): Record<string, string> {
  const told: Record<string, string> = {};
  for (const name of OUTWARD) {
    const value = headers[name];
    if (value !== undefined) told[name] = value;
  }
  return told;
}
