import { isLoopback, isIssuerUrl } from '#wire';
import { fetchJson, type FetchJsonOptions } from './fetch-json.ts';

/**
 * The URL of an issuer's keys, from its metadata by RFC 8414 or OpenID Connect. Rejects with an Error that names each
 * URL that was tried, with the reason why it failed.
 */
export async function findJwksUrl(issuer: string, options: FetchJsonOptions): Promise<string> {
  const failures: string[] = [];
  for (const url of metadataUrls(issuer)) {
    try {
      return jwksUrlOf(await fetchJson(url, options), issuer);
    } catch (error) {
      failures.push(`${url}: ${(error as Error).message}`);
    }
  }
  throw new Error(`The address of the issuer's keys was not found in its metadata: ${failures.join('; ')}`);
}

/** The well-known segment comes before the issuer's path (RFC 8414) or after it (OpenID Connect). */
function metadataUrls(issuer: string): readonly string[] {
  const { origin, pathname } = new URL(issuer);
  const path = pathname.replace(/\/$/, '');
  const urls = [
    `${origin}/.well-known/oauth-authorization-server${path}`,
    `${origin}${path}/.well-known/openid-configuration`,
  ];
  return path === '' ? urls : [...urls, `${origin}/.well-known/openid-configuration${path}`];
}

/**
 * The URL of the keys in the metadata of an issuer. Throws an Error with the reason if the metadata is not acceptable.
 */
export function jwksUrlOf(metadata: unknown, issuer: string): string {
  const { issuer: named, jwks_uri: found } = (metadata ?? {}) as {
    readonly issuer?: unknown;
    readonly jwks_uri?: unknown;
  };
  // With the metadata of another issuer, that issuer's keys would verify this issuer's tokens.
  if (named !== issuer) throw new Error('names another issuer');
  if (typeof found !== 'string' || !isIssuerUrl(found)) throw new Error('has no jwks_uri with https');
  // Metadata from the network must not direct the gateway to a service on its own machine.
  if (isLoopback(new URL(found).hostname) && !isLoopback(new URL(issuer).hostname))
    throw new Error('has a jwks_uri that leads to this machine');
  return found;
}
