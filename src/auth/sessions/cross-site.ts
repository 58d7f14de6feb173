import { GatewayError } from '#wire';
import type { WebRequest } from '#gateway';

/**
 * Only a script of the same origin can send this header without a CORS preflight. The gateway's own pages always send
 * it.
 */
const WEB_HEADER = 'x-tollgate-web';
const HOW = `send it from a page of this gateway, with the header ${WEB_HEADER}: 1`;

/**
 * Refuses requests that a page of another site made a browser send with its cookie (CSRF). Over https and on localhost,
 * browsers send Sec-Fetch-Site. Without it, the request needs the gateway's own Origin or the header of its pages, and
 * any other Origin is refused. Every method except GET and HEAD needs the header in any case. `publicOrigin` is the
 * gateway's own even if a proxy changes the Host. Throws GatewayError `permission_denied`.
 */
export function refuseCrossSite({ method, protocol, host, headers }: WebRequest, publicOrigin: string | null): void {
  const { origin, 'sec-fetch-site': site } = headers;
  const marked = headers[WEB_HEADER] === '1';
  const own = origin !== undefined && (origin === publicOrigin || isOwn(origin, protocol, host));
  // With `same-origin`, the browser itself has compared the origins, even if a proxy changes the Host.
  if (site === undefined ? origin !== undefined && !own : site !== 'same-origin')
    throw new GatewayError('permission_denied', `This request came from another site, or from no page: ${HOW}`);
  if (site === undefined && !marked && !own)
    throw new GatewayError(
      'permission_denied',
      `This request does not show that it comes from a page of this gateway: ${HOW}`,
    );
  if (method !== 'GET' && method !== 'HEAD' && !marked)
    throw new GatewayError('permission_denied', `A cookie alone is not enough for a change: ${HOW}`);
}

/**
 * Whether an Origin is the gateway's own. https is accepted too, because `protocol` is http behind a proxy that
 * terminates TLS.
 */
function isOwn(origin: string, protocol: string, host: string): boolean {
  return origin === `${protocol}://${host}` || origin === `https://${host}`;
}
