import type { IncomingMessage } from 'node:http';
import { TUNNEL_PATH } from './tunnel-path.ts';

/**
 * Whether a request with an Upgrade header is a proxy that dials in. All others are answered as if they had none,
 * as HTTP allows.
 */
export function asksForTunnel(request: IncomingMessage): boolean {
  const path = request.url ?? '';
  return (
    request.headers.upgrade?.toLowerCase() === 'websocket' &&
    (path === TUNNEL_PATH || path.startsWith(`${TUNNEL_PATH}?`))
  );
}
