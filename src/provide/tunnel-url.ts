import { TUNNEL_PATH } from '#wire';

/**
 * Returns the address of a router's tunnel. The path of the router's address is kept, because a router may be served
 * below a path.
 */
export function tunnelUrl(router: string): string {
  const url = new URL(router);
  url.protocol = url.protocol === 'http:' ? 'ws:' : 'wss:';
  url.pathname = `${url.pathname.replace(/\/$/, '')}${TUNNEL_PATH}`;
  return url.href;
}
