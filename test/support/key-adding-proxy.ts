import { once } from 'node:events';
import { createServer, request as requestOf } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface KeyAddingProxy {
  /** The target's URL, through the proxy. */
  readonly url: string;
  close(): Promise<void>;
}

/**
 * A reverse proxy on loopback that adds `authorization: Bearer <key>`, for clients that can't send this header. It
 * changes nothing else: not the path, the client's `Host` and `Origin`, or the bytes of bodies and streams. If one side
 * closes the request, the other side's request is closed too.
 */
export async function startKeyAddingProxy(target: string, key: string): Promise<KeyAddingProxy> {
  const { hostname, port, pathname } = new URL(target);
  const server = createServer((request, response) => {
    const upstream = requestOf({
      hostname,
      port,
      method: request.method,
      path: request.url,
      // The headers as they arrived, with duplicates and letter case. The `Host` of this hop isn't added.
      headers: [...request.rawHeaders, 'authorization', `Bearer ${key}`],
      setHost: false,
      agent: false,
    });
    upstream.on('response', (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.statusMessage, answer.rawHeaders);
      // Sends the headers at once, because the first event of a stream may come much later.
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
