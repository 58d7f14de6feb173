import { once } from 'node:events';
import { createServer, request as requestOf } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface KeyAddingProxy {
  /** The target's URL, at the proxy. */
  readonly url: string;
  close(): Promise<void>;
}

/**
 * A reverse proxy on loopback that adds `authorization: Bearer <key>`, for clients that cannot send one. All else
 * goes through as it is: the path, the client's own `Host` and `Origin`, bodies and streams as their bytes come. A
 * client that closes its request closes the one behind it, and the other way about.
 */
export async function startKeyAddingProxy(target: string, key: string): Promise<KeyAddingProxy> {
  const { hostname, port, pathname } = new URL(target);
  const server = createServer((request, response) => {
    const upstream = requestOf({
      hostname,
      port,
      method: request.method,
      path: request.url,
      // As they came, twins and case too, without a `Host` of this hop.
      headers: [...request.rawHeaders, 'authorization', `Bearer ${key}`],
      setHost: false,
      agent: false,
    });
    upstream.on('response', (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.statusMessage, answer.rawHeaders);
      // A stream whose first event is far off shows its headers now.
      response.flushHeaders();
      answer.pipe(response);
      answer.on('error', () => response.destroy());
    });
    upstream.on('error', () => (response.headersSent ? response.destroy() : response.writeHead(502).end()));
    response.on('close', () => upstream.destroy());
    request.on('error', () => upstream.destroy());
    request.pipe(upstream);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}${pathname}`,
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}
