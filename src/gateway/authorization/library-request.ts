import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { OWN_SCOPE } from '#auth';

/** Parameters of OpenID Connect, which asks who somebody is. This server only says what a program may do. */
const OF_IDENTITY = ['nonce', 'claims', 'max_age', 'id_token_hint', 'login_hint', 'acr_values', 'claims_locales'];

/**
 * A request for the library: at the address of the issuer, whatever the Host header says, and with the body that was
 * read already.
 */
export function requestFor(
  raw: IncomingMessage,
  issuer: string,
  body: Uint8Array | null,
  url = raw.url,
): IncomingMessage {
  const { protocol, host } = new URL(issuer);
  const headers: IncomingHttpHeaders = { ...raw.headers, host, 'x-forwarded-proto': protocol.slice(0, -1) };
  for (const name of ['x-forwarded-host', 'forwarded', 'transfer-encoding', 'content-encoding']) delete headers[name];
  if (body !== null) headers['content-length'] = String(body.byteLength);
  const bytes = body ?? new Uint8Array();
  return Object.create(raw, {
    url: { value: url, writable: true },
    originalUrl: { value: undefined, writable: true },
    headers: { value: headers },
    readable: { value: true },
    readableEncoding: { value: null },
    iterator: { value: () => Readable.from(bytes.byteLength === 0 ? [] : [bytes]) },
  }) as IncomingMessage;
}

/**
 * The address of an authorization request, as the library takes it. Its scope is always the same: RFC 6749 section 3.3
 * lets a server ignore what a client asks for, and what a program may do is agreed on the page.
 */
export function authorizationUrl(url: string): string {
  const at = url.indexOf('?');
  const query = new URLSearchParams(at === -1 ? '' : url.slice(at));
  for (const name of OF_IDENTITY) query.delete(name);
  // The person is asked every time, so only `none` makes a difference: it is refused.
  if (query.has('prompt') && query.get('prompt') !== 'none') query.delete('prompt');
  query.set('scope', OWN_SCOPE);
  return `${at === -1 ? url : url.slice(0, at)}?${query}`;
}
