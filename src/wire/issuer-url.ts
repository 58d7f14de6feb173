import { isLoopback } from './host-name.ts';

/**
 * True if keys and metadata may be fetched from this URL: https, or http to a loopback host. No credentials and no
 * fragment.
 */
export function isIssuerUrl(text: string): boolean {
  const url = URL.parse(text);
  if (!url || url.username !== '' || url.password !== '' || url.hash !== '') return false;
  return url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback(url.hostname));
}
