import { TUNNEL_PATH } from '#wire';

/** The address of a router's tunnel. The path of the router's address stays: a router may live below one. */
export function tunnelUrl(router: string): string {
  const url = new URL(router);
  url.protocol = url.protocol === 'http:' ? 'ws:' : 'wss:';
  url.pathname = `${url.pathname.replace(/\/$/, '')}${TUNNEL_PATH}`;
  return url.href;
}
