import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { IncomingHttpHeaders } from 'node:http2';
import type { AddressInfo } from 'node:net';
import type { RouterEnd } from './tunnel-router.ts';

/** Serves one service of a proxy over HTTP, through its tunnel but without a gateway. */
export async function serveTunnel(end: RouterEnd, path: string): Promise<{ readonly url: URL; stop(): void }> {
  const server = createServer((request, response) => {
    const { connection: _connection, host: _host, 'transfer-encoding': _encoding, ...headers } = request.headers;
    const stream = end.session.request({ ...headers, ':method': request.method, ':path': path });
    request.pipe(stream);
    stream.on('response', (head) => {
      writeHead(response, head);
      stream.pipe(response);
    });
    stream.on('error', () => response.destroy());
    response.on('close', () => stream.close(response.writableFinished ? 0 : 8));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`),
    stop() {
      server.close();
      server.closeAllConnections();
    },
  };
}

function writeHead(
  response: ServerResponse,
  { ':status': status, ...head }: IncomingHttpHeaders & { readonly ':status'?: number | undefined },
): void {
  response.writeHead(
    status ?? 502,
    Object.fromEntries(
      Object.entries(head).flatMap(([name, value]) =>
        value === undefined || name.startsWith(':') ? [] : [[name, value]],
      ),
    ),
  );
  response.flushHeaders();
}
