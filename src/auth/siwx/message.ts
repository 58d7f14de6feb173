import { parseEvmAddress } from '#wire';
import { quoted, signInError } from './sign-in-error.ts';
import { solanaKey } from './solana-signature.ts';
import { parseTime } from './time.ts';

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
/**
 * Control, direction and zero-width characters, line separators and lone surrogates. They are refused because a wallet
 * may display them as something else.
 */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u;
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
  const odd = lines.findIndex((line) => UNPRINTABLE.test(line));
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
