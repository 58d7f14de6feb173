import type { SignInMessage } from './message.ts';
import { quoted, signInError } from './sign-in-error.ts';

/** What a message must satisfy to count here. */
export interface SignInRules {
  /** Hosts, with a port where it is not the scheme's, in lower case. */
  readonly domains: ReadonlySet<string>;
  readonly lifetimeMsMax: number;
  readonly skewMs: number;
}

/** When a message counts, both ends included, in epoch milliseconds. */
export interface Validity {
  readonly from: number;
  readonly until: number;
}

/**
 * Either scheme: which names this gateway goes by is the operator's to say, and the scheme adds nothing to what is
 * signed.
 */
const AUTHORITY = /^https?:\/\/([^/?#]+)(?:[/?#]|$)/;

/**
 * Until when a message is good, if it is for this gateway and good at `at`. Throws GatewayError `unauthorized` that
 * says what is wrong. Names are compared as they were signed, byte by byte: whatever would have to be normalised
 * first is another name.
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
    throw signInError(
      `The sign-in message is for the domain ${quoted(domain)}; this gateway takes those for ${here()}`,
    );
  const [, host = ''] = AUTHORITY.exec(uri) ?? [];
  if (!domains.has(host))
    throw signInError(
      `The URI of the sign-in message, ${quoted(uri)}, does not lead here; this gateway takes those of ${here()}`,
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
  // A message that does not say when it began may have begun at the earliest that its end allows.
  const start = issuedAt ?? end - lifetimeMsMax;
  if (end <= start) throw signInError('Expiration Time of the sign-in message is not after Issued At');
  if (end - start > lifetimeMsMax) {
    throw signInError(
      `The sign-in message is valid for more than ${lifetimeMsMax / 1_000} s, which is the most this gateway takes`,
    );
  }
  if (notBefore !== null && notBefore >= end)
    throw signInError('Not Before of the sign-in message is not before its end');
  return { from: Math.max(start, notBefore ?? start) - skewMs, until: end + skewMs };
}

const isoTime = (at: number): string => new Date(at).toISOString();
