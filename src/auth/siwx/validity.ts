import type { SignInMessage } from './message.ts';
import { quoted, signInError } from './sign-in-error.ts';

/** The rules of a gateway for sign-in messages. */
export interface SignInRules {
  /** Hosts in lower case, with a port unless it is the scheme's default. */
  readonly domains: ReadonlySet<string>;
  readonly lifetimeMsMax: number;
  readonly skewMs: number;
}

/** The time in which a message is valid, in epoch milliseconds. Both ends are inclusive. */
export interface Validity {
  readonly from: number;
  readonly until: number;
}

/** Accepts http and https, because the operator configures only host names. */
const AUTHORITY = /^https?:\/\/([^/?#]+)(?:[/?#]|$)/;

/**
 * Checks that a message is for this gateway and valid at `at`, and returns its validity. Throws GatewayError
 * `unauthorized` with the reason. Domains are compared byte by byte, as signed, without normalisation.
 */
export function checkValidity(message: SignInMessage, rules: SignInRules, at: number): Validity {
  checkPlace(message, rules.domains);
  const validity = validityOf(message, rules);
  if (at > validity.until)
    throw signInError(`The sign-in message has expired: the time here is ${isoTime(at)}. Sign a new one`);
  if (at < validity.from)
    throw signInError(`The sign-in message is from the future, or valid for too long: the time here is ${isoTime(at)}`);
  return validity;
}

function checkPlace({ domain, uri }: SignInMessage, domains: ReadonlySet<string>): void {
  const here = () => [...domains].slice(0, 5).join(', ');
  if (!domains.has(domain))
    throw signInError(`The sign-in message is for the domain ${quoted(domain)}; this gateway accepts ${here()}`);
  const [, host = ''] = AUTHORITY.exec(uri) ?? [];
  if (!domains.has(host))
    throw signInError(
      `The URI of the sign-in message, ${quoted(uri)}, does not lead here; this gateway accepts ${here()}`,
    );
}

function validityOf(
  { issuedAt, expirationTime, notBefore }: SignInMessage,
  { lifetimeMsMax, skewMs }: SignInRules,
): Validity {
  if (issuedAt === null && expirationTime === null) {
    throw signInError('The sign-in message has neither Issued At nor Expiration Time: it would be valid for ever');
  }
  const end = expirationTime ?? issuedAt! + lifetimeMsMax;
  // Without Issued At, the message counts as issued at the earliest time that the longest lifetime allows.
  const start = issuedAt ?? end - lifetimeMsMax;
  if (end <= start) throw signInError('Expiration Time of the sign-in message is not after Issued At');
  if (end - start > lifetimeMsMax) {
    throw signInError(
      `The sign-in message is valid for more than ${lifetimeMsMax / 1_000} s, which is the limit of this gateway`,
    );
  }
  if (notBefore !== null && notBefore >= end)
    throw signInError('Not Before of the sign-in message is not before its end');
  return { from: Math.max(start, notBefore ?? start) - skewMs, until: end + skewMs };
}

const isoTime = (at: number): string => new Date(at).toISOString();
