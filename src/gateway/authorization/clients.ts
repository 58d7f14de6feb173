import type { GuardedFetch } from '#network';
import { isLoopback, printable } from '#security';
import { BOUNDS, isObject, parseForeign } from '#wire';

/** The description of a client as far as the gateway reads it, in the names of RFC 7591. */
export type ClientMetadata = Readonly<Record<string, unknown>>;

/** Ways in which a client may authenticate itself at the token endpoint. */
export const CLIENT_AUTH_METHODS = ['none', 'client_secret_basic', 'client_secret_post', 'private_key_jwt'] as const;

const NAME_MAX = 64;
const REDIRECTS_MAX = 20;
const URI_LENGTH_MAX = 2_048;

interface ReadingRules {
  readonly secrets: boolean;
  readonly issuer: string;
}

/**
 * The description of a client, from its document or its registration. Other members are left out, because a client that
 * asks for more than this server has shall still work.
 */
export function readClientMetadata(
  described: Readonly<Record<string, unknown>>,
  { secrets, issuer }: ReadingRules,
): ClientMetadata {
  const { redirect_uris: uris, client_name: name, token_endpoint_auth_method: method } = described;
  const { jwks, jwks_uri: jwksUri, dpop_bound_access_tokens: bound } = described;
  const shownName = typeof name === 'string' ? printable(name.trim(), NAME_MAX).trim() : '';
  const isKnown = CLIENT_AUTH_METHODS.some((one) => one === method);
  const known = isKnown && (secrets ? method !== 'private_key_jwt' : true) ? method : 'none';
  return {
    redirect_uris: (Array.isArray(uris) ? uris.slice(0, REDIRECTS_MAX) : []).filter((uri) => isRedirect(uri, issuer)),
    ...(shownName === '' ? {} : { client_name: shownName }),
    // Programs of a person's machine listen on a port of loopback that they do not know before (RFC 8252).
    application_type: 'native',
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: known,
    ...(known === 'private_key_jwt' ? (jwks === undefined ? { jwks_uri: jwksUri } : { jwks }) : {}),
    ...(bound === true ? { dpop_bound_access_tokens: true } : {}),
  };
}

/**
 * Schemes that no program on the person's machine has of its own: they lead to other hosts, to other people, to pages
 * of websites (`web+`, and those of browsers such as `googlechromes` and `x-safari-https`), or into the browser. The
 * page would call their host "a program on this computer". The library refuses those that run scripts, and names them.
 */
const FOREIGN_SCHEMES =
  /^(?:s?ftps?|wss?|gopher|mailto|sms|tel|filesystem|view-source|chrome|edge|moz-extension|web\+.*|.+-https?|googlechromes?|intent|android-app|jar|feed|resource|ldaps?|smb|cifs|afp|nfs|ssh|telnet|git|svn|rtsps?|davs?|ircs?|xmpp|sips?|im|skype|tg|whatsapp|news|nntp|ip[fn]s|magnet):$/;
/** Links of browsers and other programs that open what they carry, such as `microsoft-edge:https://…`. */
const CARRIES_ADDRESS = /https?(?::|%3a)/i;

/** The gateway's own pages take no answers, and their host on the page would seem to vouch for the client. */
export function isRedirect(uri: unknown, issuer: string): boolean {
  const url = typeof uri === 'string' && uri.length <= URI_LENGTH_MAX ? URL.parse(uri) : null;
  if (url === null || url.username !== '' || url.password !== '') return false;
  const isLink = !/^https?:$/.test(url.protocol);
  if (isLink && (FOREIGN_SCHEMES.test(url.protocol) || CARRIES_ADDRESS.test(url.href))) return false;
  return !isSamePlace(url, new URL(issuer));
}

/** Whether an address leads to the gateway: by any name of this machine, or by its host with a dot at the end. */
function isSamePlace(url: URL, own: URL): boolean {
  if (url.protocol !== own.protocol || url.port !== own.port) return false;
  const [host, ownHost] = [url.hostname.replace(/\.$/, ''), own.hostname.replace(/\.$/, '')];
  return host === ownHost || (isThisMachine(host) && isThisMachine(ownHost));
}

/** Also by the names below `localhost`, which browsers lead there, and by addresses of IPv4 in those of IPv6. */
const isThisMachine = (host: string): boolean =>
  isLoopback(host) ||
  host.endsWith('.localhost') ||
  /^\[::(?:ffff:7f[0-9a-f]{2}:[0-9a-f]{1,4})?\]$/.test(host) ||
  host === '0.0.0.0';

const TIMEOUT_MS = 2_500;

/**
 * The fetch function of the library, for documents of clients and their keys. The addresses are strangers', so they
 * lead to the public internet alone. No redirect is followed.
 */
export function createClientFetch(
  fetch: GuardedFetch,
  issuer: string,
): (url: string | URL | Request) => Promise<Response> {
  return async (url) => {
    const { bytesMax } = BOUNDS.clientDocument;
    const headers = { accept: 'application/json' };
    const reply = await fetch(url instanceof Request ? url.url : String(url), {
      headers,
      timeoutMs: TIMEOUT_MS,
      bodyBytesMax: bytesMax,
    });
    if (reply.status !== 200) return new Response(null, { status: reply.status === 304 ? 502 : reply.status });
    const parsed = parseForeign(reply.body, BOUNDS.clientDocument);
    const { 'cache-control': cacheControl } = reply.headers;
    return Response.json(isObject(parsed) && 'client_id' in parsed ? documentOf(parsed, issuer) : parsed, {
      headers: cacheControl === undefined ? {} : { 'cache-control': cacheControl },
    });
  };
}

/** Members that the library judges are kept as they are. */
function documentOf(document: Readonly<Record<string, unknown>>, issuer: string): ClientMetadata {
  const { client_id: id, client_secret: secret, token_endpoint_auth_method: method } = document;
  return {
    ...readClientMetadata(document, { secrets: false, issuer }),
    client_id: id,
    ...(secret === undefined ? {} : { client_secret: secret }),
    ...(method === undefined ? {} : { token_endpoint_auth_method: method }),
  };
}

/** A client, as far as it is known. Everything but `document` is what the client says of itself. */
export interface ClientIdentity {
  readonly name: string | null;
  /** The address of its document, whose host vouches for it. null for a client that registered itself. */
  readonly document: string | null;
  /** The host that gets the answer. null for a program on the person's own machine. */
  readonly sendsTo: string | null;
  /** The scheme of the link that opens this program, such as `cursor:`. null for loopback, and for a host. */
  readonly link: string | null;
}

/** `redirectUri`: the one of this sign-in, which the library has compared with those of the client. */
export function identityOf(
  client: { readonly clientId: string; readonly clientName?: string | undefined },
  redirectUri: string,
): ClientIdentity {
  const { clientId, clientName } = client;
  const url = new URL(redirectUri);
  const isWeb = url.protocol === 'https:';
  return {
    name: clientName === undefined ? null : printable(clientName, NAME_MAX),
    document: clientId.startsWith('https://') ? clientId : null,
    sendsTo: isWeb ? url.host : null,
    link: isWeb || url.protocol === 'http:' ? null : url.protocol,
  };
}
