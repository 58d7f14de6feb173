import { GatewayError } from '#wire';
import type { WebRequest } from '#gateway';

/** Only a script of the same origin can send it without being asked first. The pages of the gateway always do. */
const WEB_HEADER = 'x-tollgate-web';
const HOW = `send it from a page of this gateway, with the header ${WEB_HEADER}: 1`;

/**
 * Refuses what a page of another site can make a browser send along with its cookie. Browsers tell the site by
 * Sec-Fetch-Site, over https and on this machine; elsewhere an Origin of our own or the header of our pages stands for
 * it. What is not a GET needs the header in any case. Throws GatewayError `permission_denied`.
 */
export function refuseCrossSite({ method, protocol, host, headers }: WebRequest): void {
  const site = headers['sec-fetch-site'];
  const marked = headers[WEB_HEADER] === '1';
  if (site !== undefined && site !== 'same-origin')
    throw new GatewayError('permission_denied', `This request came from another site, or from no page: ${HOW}`);
  if (site === undefined && !marked && !isOwn(headers.origin, protocol, host))
    throw new GatewayError('permission_denied', `Nothing tells that a page of this gateway sent this request: ${HOW}`);
  if (method !== 'GET' && method !== 'HEAD' && !marked)
    throw new GatewayError('permission_denied', `A cookie alone does not change anything: ${HOW}`);
}

/** Whether an Origin is the one that the request went to. Behind a proxy that ends TLS, `protocol` is http. */
function isOwn(origin: string | undefined, protocol: string, host: string): boolean {
  return origin === `${protocol}://${host}` || origin === `https://${host}`;
}
