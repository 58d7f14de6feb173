import { parseHost } from '#wire';

/**
 * Says what is wrong with a domain that wallets sign in for; null for a right one: a host in lower case as browsers
 * write it, with a port where it is not the scheme's own.
 */
export function domainFault(domain: string): string | null {
  const url = URL.parse(`https://${domain}`);
  if (!url || url.host === '' || url.pathname !== '/' || url.search || url.hash || url.username || url.password)
    return 'is not a host';
  if (url.host !== domain && `${url.host}:443` !== domain) return `is written ${url.host}`;
  return null;
}

/**
 * Says what is wrong with a host name of this gateway; null for a right one: as browsers write it, addresses of IPv6
 * in brackets.
 */
export function hostNameFault(name: string): string | null {
  const host = parseHost(name);
  if (host === null) return 'is not a host name';
  if (host.port !== '') return 'has a port, which is not looked at';
  return host.name === name ? null : `is written ${host.name}`;
}

/**
 * Says what is wrong with an origin of pages; null for a right one: as browsers write it. Apps and extensions have
 * schemes of their own.
 */
export function originFault(origin: string): string | null {
  if (origin === 'null') return null;
  if (!/^[a-z][a-z0-9+.-]*:\/\/[^\s/?#@*]{1,255}$/.test(origin))
    return 'is not an origin: a scheme and a host, and nothing behind them';
  const url = URL.parse(origin);
  if (!url) return 'is not a URL';
  return url.origin === 'null' || url.origin === origin ? null : `is written ${url.origin}`;
}
