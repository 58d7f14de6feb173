import { parseEvmAddress } from '#config';
import { GatewayError } from '#errors';
import { INVISIBLE } from '#security';
import { solanaKey } from './wallet-signature.ts';

/** A message that a wallet signed. Times are epoch milliseconds. null: the message does not have the field. */
export interface SignInMessage {
  readonly namespace: Namespace;
  /** The domain that the wallet showed to its owner. */
  readonly domain: string;
  /** Solana: as written. EVM: in lower case. */
  readonly address: string;
  readonly uri: string;
  /** CAIP-2. */
  readonly network: string;
  readonly nonce: string | null;
  readonly issuedAt: number | null;
  readonly expirationTime: number | null;
  readonly notBefore: number | null;
}

type Namespace = 'eip155' | 'solana';

const NAMESPACES: Readonly<Record<string, Namespace>> = { Ethereum: 'eip155', Solana: 'solana' };
const SOLANA_CLUSTERS: Readonly<Record<string, string>> = {
  mainnet: '5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp',
  devnet: 'EtWTRABZaYq6iMfeYKouRu166VU2xqa1',
  testnet: '4uhcVJyU9pJkvQyS88uRDiswHXSCkY3z',
};

const FIRST_LINE = /^([!-~]{1,255}) wants you to sign in with your (Ethereum|Solana) account:$/;
const URI_TEXT = /^[A-Za-z][A-Za-z0-9+.-]*:[A-Za-z0-9\-._~:/?#[\]@!$&'()*+,;=%]+$/;
const NONCE = /^[A-Za-z0-9]{8,}$/;
const REQUEST_ID = /^[!-~]+$/;
const EVM_REFERENCE = /^[1-9][0-9]{0,31}$/;
const SOLANA_REFERENCE = /^[1-9A-HJ-NP-Za-km-z]{32}$/;

/**
 * Parses a CAIP-122 text. Every line must be known, in order, and present once. Throws GatewayError `unauthorized` that
 * names the wrong line. Does not check the signature, the domain or the times.
 */
export function parseMessage(text: string): SignInMessage {
  const lines = text.split('\n');
  // A wallet may display them as something else.
  const odd = lines.findIndex((line) => INVISIBLE.test(line));
  if (odd >= 0)
    throw signInError(
      `Line ${odd + 1} of the sign-in message contains a control or invisible character; lines end with a single line feed`,
    );

  const first = FIRST_LINE.exec(lines[0]!);
  if (!first) {
    throw signInError(
      'The sign-in message does not begin with "<domain> wants you to sign in with your Ethereum account:", or with Solana in its place',
    );
  }
  const namespace = NAMESPACES[first[2]!]!;
  const address = parseAddress(namespace, lines[1] ?? '');
  const read = lineReader(lines, afterStatement(lines));

  const uri = read('URI');
  if (uri === null || !URI_TEXT.test(uri))
    throw signInError('The line "URI: …" of the sign-in message is missing or no URI');
  if (read('Version') !== '1') throw signInError('The sign-in message has no line "Version: 1" after its URI');
  const network = parseNetwork(namespace, read('Chain ID') ?? '');
  const nonce = read('Nonce');
  if (nonce !== null && !NONCE.test(nonce))
    throw signInError('The nonce of the sign-in message is not at least 8 letters and digits');
  const issuedAt = timeOf('Issued At', read('Issued At'));
  const expirationTime = timeOf('Expiration Time', read('Expiration Time'));
  const notBefore = timeOf('Not Before', read('Not Before'));
  const requestId = read('Request ID');
  if (requestId !== null && !REQUEST_ID.test(requestId))
    throw signInError('The request id of the sign-in message is empty or contains spaces');
  read.resources();
  return { namespace, domain: first[1]!, address, uri, network, nonce, issuedAt, expirationTime, notBefore };
}

/**
 * The index of the line with the first field. After the address comes a blank line. Then comes either a statement and a
 * blank line, or a second blank line (EIP-4361 without a statement), or the first field.
 */
function afterStatement(lines: readonly string[]): number {
  if (lines[2] !== '') throw signInError('The third line of the sign-in message, after the address, is not blank');
  if (lines[3]?.startsWith('URI: ')) return 3;
  if (lines[3] === '') return 4;
  if (lines[4] !== '')
    throw signInError('The statement of the sign-in message is not one line with a blank line after it');
  return 5;
}

/**
 * Reads fields in the order of the calls. A field counts as absent if the next line is another one. A line that is left
 * over at the end is an error.
 */
function lineReader(lines: readonly string[], start: number): { (name: string): string | null; resources(): void } {
  let at = start;
  const read = (name: string): string | null => {
    const line = lines[at];
    if (!line?.startsWith(`${name}: `)) return null;
    at += 1;
    return line.slice(name.length + 2);
  };
  return Object.assign(read, {
    resources() {
      if (lines[at] === 'Resources:') {
        at += 1;
        while (at < lines.length && lines[at]!.startsWith('- ') && URI_TEXT.test(lines[at]!.slice(2))) at += 1;
      }
      if (at < lines.length)
        throw signInError(
          `Line ${at + 1} of the sign-in message is unknown, doubled, malformed or out of order: ${quoted(lines[at]!)}`,
        );
    },
  });
}

function parseAddress(namespace: Namespace, text: string): string {
  if (namespace === 'solana') {
    if (solanaKey(text) === null)
      throw signInError(`The second line of the sign-in message is not a Solana address: ${quoted(text)}`);
    return text;
  }
  const address = parseEvmAddress(text);
  if (address === null) {
    throw signInError(
      `The second line of the sign-in message is not an EVM address in lower case or with its EIP-55 checksum: ${quoted(text)}`,
    );
  }
  return address;
}

/** The CAIP-2 id of a chain, from the full id, the bare reference or the name of a Solana cluster. */
function parseNetwork(namespace: Namespace, text: string): string {
  const bare = text.startsWith(`${namespace}:`) ? text.slice(namespace.length + 1) : text;
  const reference = namespace === 'solana' && Object.hasOwn(SOLANA_CLUSTERS, bare) ? SOLANA_CLUSTERS[bare]! : bare;
  if (!(namespace === 'solana' ? SOLANA_REFERENCE : EVM_REFERENCE).test(reference)) {
    throw signInError(
      `The line "Chain ID: …" after the version is missing or no chain of ${namespace}: ${quoted(text)}`,
    );
  }
  return `${namespace}:${reference}`;
}

function timeOf(name: string, text: string | null): number | null {
  if (text === null) return null;
  const time = parseTime(text);
  if (time === null)
    throw signInError(
      `${name} of the sign-in message is not an RFC 3339 time such as 2026-01-31T12:00:00Z: ${quoted(text)}`,
    );
  return time;
}

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

const RFC_3339 = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?(?:Z|([+-])(\d\d):(\d\d))$/;
const MINUTE_MS = 60_000;

/**
 * Epoch milliseconds of an RFC 3339 time such as `2026-03-04T05:06:07.089Z`. null for any other form, and for a date or
 * time that does not exist. `Date.parse` accepts many other forms, and reads some of them as local time.
 */
export function parseTime(text: string): number | null {
  const match = RFC_3339.exec(text);
  if (!match) return null;
  const [, year, month, day, hour, minute, second, fraction = '', sign, offsetHours, offsetMinutes] = match;
  const fields = [Number(year), Number(month) - 1, Number(day), Number(hour), Number(minute), Number(second)] as const;
  const date = new Date(0);
  date.setUTCFullYear(fields[0], fields[1], fields[2]);
  date.setUTCHours(fields[3], fields[4], fields[5], Number(fraction.slice(0, 3).padEnd(3, '0')));
  // A field that is out of range has changed the other fields.
  if (date.getUTCMonth() !== fields[1] || date.getUTCDate() !== fields[2] || date.getUTCHours() !== fields[3])
    return null;
  if (date.getUTCMinutes() !== fields[4] || date.getUTCSeconds() !== fields[5]) return null;
  if (sign === undefined) return date.getTime();
  const offset = Number(offsetHours) * 60 + Number(offsetMinutes);
  if (Number(offsetHours) > 23 || Number(offsetMinutes) > 59) return null;
  return date.getTime() - (sign === '-' ? -offset : offset) * MINUTE_MS;
}

/** The error of a refused sign-in (401). `message` tells the developer what is wrong. */
export function signInError(message: string): GatewayError {
  return new GatewayError('unauthorized', message, { headers: { 'www-authenticate': 'SIWx, Bearer' } });
}

/** Untrusted text for an error message: quoted, escaped and shortened. */
export function quoted(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text).replace(/[^ -~…]/g, '?');
}
