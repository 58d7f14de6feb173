import { isLoopback } from './host-name.ts';

/** Whether keys and metadata may be fetched from an address: https, or http of this machine. */
export function isIssuerUrl(text: string): boolean {
  const url = URL.parse(text);
  if (!url || url.username !== '' || url.password !== '' || url.hash !== '') return false;
  return url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback(url.hostname));
}
