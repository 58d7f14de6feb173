import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';

export interface ListeningReceiver {
  readonly port: number;
  readonly origin: string;
  /** Connections that were made to it. */
  connections(): number;
}

/** An HTTP server on loopback that is gone when the test is. */
export async function listenOn(
  host: string,
  answer: (request: IncomingMessage, response: ServerResponse) => void,
  port = 0,
): Promise<ListeningReceiver> {
  let connections = 0;
  const server = createServer(answer);
  server.on('connection', () => (connections += 1));
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(port, host, resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    return new Promise<void>((resolve) => server.close(() => resolve()));
  });
  const bound = (server.address() as AddressInfo).port;
  return {
    port: bound,
    origin: `http://${host.includes(':') ? `[${host}]` : host}:${bound}`,
    connections: () => connections,
  };
}
