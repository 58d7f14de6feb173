import type { IncomingMessage } from 'node:http';
import { TUNNEL_PATH } from './tunnel-path.ts';

/**
 * True if a request with an Upgrade header is a provider's proxy that dials in. All other upgrade requests are answered
 * as normal requests, as HTTP allows.
 */
export function asksForTunnel(request: IncomingMessage): boolean {
  const path = request.url ?? '';
  return (
    request.headers.upgrade?.toLowerCase() === 'websocket' &&
    (path === TUNNEL_PATH || path.startsWith(`${TUNNEL_PATH}?`))
  );
}
