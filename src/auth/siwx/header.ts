import type { IncomingHttpHeaders } from 'node:http';
import { SIGN_IN_HEADERS } from '#wire';
import { signInError } from './sign-in-error.ts';
import { textOfFields } from './flat-message.ts';

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
  let found: string | null = null;
  for (const name of SIGN_IN_HEADERS) {
    const value = headers[name];
    if (value === undefined) continue;
    const text = String(value).trim();
    if (found !== null && found !== text)
      throw signInError('Two sign-in headers have two values: send only SIGN-IN-WITH-X');
    found = text;
  }
  return found;
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
  const fields = parseObject(Buffer.from(value, 'base64').toString());
  if (!fields) throw signInError('The sign-in header is not the base64 of a JSON object {"message", "signature"}');
  const { message, signature } = fields;
  if (typeof signature !== 'string' || signature === '')
    throw signInError('The sign-in header has no text "signature"');
  if (message === undefined) return { text: textOfFields(fields), signature };
  if (typeof message !== 'string') throw signInError('The "message" of the sign-in header is not a text');
  return { text: message, signature };
}

function parseObject(json: string): Readonly<Record<string, unknown>> | null {
  try {
    const value: unknown = JSON.parse(json);
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : null;
  } catch {
    return null;
  }
}
