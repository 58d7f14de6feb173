import type { IncomingHttpHeaders } from 'node:http';
import { SIGN_IN_HEADERS } from '#security';
import { BOUNDS, foreignObject } from '#wire';
import { signInError, quoted } from './message.ts';

/** The longest accepted header value, in characters. */
const VALUE_LENGTH_MAX = 8 * 1024;
/** Base64 and base64url, with or without padding. */
const BASE64 = /^[A-Za-z0-9+/_-]+={0,2}$/;

/** The content of a sign-in header: the signed text, and the signature in its original encoding. */
export interface SignedMessage {
  readonly text: string;
  readonly signature: string;
}

/**
 * The value of a request's sign-in header, under any of its names. null without one. Throws GatewayError `unauthorized`
 * if two of the names have different values.
 */
export function readSignIn(headers: IncomingHttpHeaders): string | null {
  let header: string | null = null;
  for (const name of SIGN_IN_HEADERS) {
    const value = headers[name];
    if (value === undefined) continue;
    const text = String(value).trim();
    if (header !== null && header !== text)
      throw signInError('Two sign-in headers have two values: send only SIGN-IN-WITH-X');
    header = text;
  }
  return header;
}

/**
 * Decodes the value of a sign-in header: base64 or base64url of JSON, either `{message, signature}` or the flat fields
 * of the x402 extension. Throws GatewayError `unauthorized` for anything else.
 */
export function decodeSignIn(value: string): SignedMessage {
  if (value.length > VALUE_LENGTH_MAX)
    throw signInError(`The sign-in header is longer than ${VALUE_LENGTH_MAX} characters`);
  if (!BASE64.test(value))
    throw signInError('The sign-in header is not base64 or base64url, or was sent more than once');
  const fields = foreignObject(Buffer.from(value, 'base64').toString(), BOUNDS.header);
  if (!fields) throw signInError('The sign-in header is not the base64 of a JSON object {"message", "signature"}');
  const { message, signature } = fields;
  if (typeof signature !== 'string' || signature === '')
    throw signInError('The sign-in header has no text "signature"');
  if (message === undefined) return { text: textOfFields(fields), signature };
  if (typeof message !== 'string') throw signInError('The "message" of the sign-in header is not a text');
  return { text: message, signature };
}

/**
 * The signature schemes that are consistent with a namespace. The name of the scheme is only checked. The chain and the
 * signature itself decide how to verify.
 */
const SCHEMES: Readonly<Record<string, readonly string[]>> = {
  eip155: ['eip191', 'eip1271', 'eip6492'],
  solana: ['ed25519', 'siws'],
};
const ACCOUNTS: Readonly<Record<string, string>> = { eip155: 'Ethereum', solana: 'Solana' };

/**
 * Rebuilds the text that a wallet signed from the flat fields of the x402 extension `sign-in-with-x`. The layout is
 * that of the extension's clients. The chain is its bare reference. On EVM the text follows EIP-4361, with a second
 * blank line if there is no statement. Throws GatewayError `unauthorized` for a missing or invalid field.
 */
function textOfFields(fields: Readonly<Record<string, unknown>>): string {
  const required = (name: string): string => {
    const value = textField(fields, name);
    if (value === null) throw signInError(`The sign-in has neither a message nor the field "${name}"`);
    return value;
  };
  const chainId = required('chainId');
  const [namespace = '', reference = '', ...more] = chainId.split(':');
  const account = Object.hasOwn(ACCOUNTS, namespace) ? ACCOUNTS[namespace] : undefined;
  if (account === undefined || more.length > 0)
    throw signInError(`The chainId of the sign-in is not CAIP-2 of an EVM chain or Solana: ${quoted(chainId)}`);
  for (const name of ['type', 'signatureScheme']) {
    const scheme = textField(fields, name);
    if (scheme !== null && !SCHEMES[namespace]!.includes(scheme))
      throw signInError(`${name} ${quoted(scheme)} does not belong to ${namespace}`);
  }

  const lines = [`${required('domain')} wants you to sign in with your ${account} account:`, required('address'), ''];
  const statement = textField(fields, 'statement');
  if (statement) lines.push(statement, '');
  else if (namespace === 'eip155') lines.push('');
  lines.push(`URI: ${required('uri')}`, `Version: ${required('version')}`, `Chain ID: ${reference}`);
  const optional = (label: string, name: string) => {
    const value = textField(fields, name);
    if (value !== null) lines.push(`${label}: ${value}`);
  };
  optional('Nonce', 'nonce');
  optional('Issued At', 'issuedAt');
  optional('Expiration Time', 'expirationTime');
  optional('Not Before', 'notBefore');
  optional('Request ID', 'requestId');
  const resources = resourcesOf(fields['resources']);
  if (resources !== null && (resources.length > 0 || namespace === 'eip155'))
    lines.push('Resources:', ...resources.map((uri) => `- ${uri}`));
  return lines.join('\n');
}

/**
 * The text of a field. null if it is absent or null. Line feeds are refused, because they would add lines to the
 * message.
 */
function textField(fields: Readonly<Record<string, unknown>>, name: string): string | null {
  const value = Object.hasOwn(fields, name) ? fields[name] : null;
  if (value === null || value === undefined) return null;
  if (typeof value !== 'string' || value.includes('\n'))
    throw signInError(`The field "${name}" of the sign-in is not a text of one line`);
  return value;
}

function resourcesOf(value: unknown): readonly string[] | null {
  if (value === null || value === undefined) return null;
  if (!Array.isArray(value) || !value.every((uri): uri is string => typeof uri === 'string' && !uri.includes('\n'))) {
    throw signInError('The field "resources" of the sign-in is not a list of texts of one line');
  }
  return value;
}
