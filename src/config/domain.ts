import { parseHost } from '#wire';

/**
 * Returns the fault of a domain for sign-in. null for a valid one: a host in lower case, as browsers write it, with the
 * port if it is not the default.
 */
export function domainFault(domain: string): string | null {
  const url = URL.parse(`https://${domain}`);
  if (!url || url.host === '' || url.pathname !== '/' || url.search || url.hash || url.username || url.password)
    return 'is not a host';
  if (url.host !== domain && `${url.host}:443` !== domain) return `is written ${url.host}`;
  return null;
}

/**
 * Returns the fault of a host name of this gateway. null for a valid one: as browsers write it, without a port, and
 * with brackets around IPv6 addresses.
 */
export function hostNameFault(name: string): string | null {
  const host = parseHost(name);
  if (host === null) return 'is not a host name';
  if (host.port !== '') return 'must not have a port';
  return host.name === name ? null : `is written ${host.name}`;
}

/**
 * Returns the fault of a web origin. null for a valid one, as browsers write it. Any scheme is allowed, because apps
 * and extensions have their own.
 */
export function originFault(origin: string): string | null {
  if (origin === 'null') return null;
  if (!/^[a-z][a-z0-9+.-]*:\/\/[^\s/?#@*]{1,255}$/.test(origin))
    return 'is not an origin: a scheme and a host, and nothing behind them';
  const url = URL.parse(origin);
  if (!url) return 'is not a URL';
  return url.origin === 'null' || url.origin === origin ? null : `is written ${url.origin}`;
}
