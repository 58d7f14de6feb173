import { once } from 'node:events';
import { createServer } from 'node:https';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { SELF_SIGNED } from '../../../support/self-signed.ts';

/** An https server with documents of clients, whose certificate this process trusts. */
export interface DocumentServer {
  /** `https://localhost:<port>`. */
  readonly origin: string;
  /** Paths that were requested, oldest first. */
  readonly asked: string[];
  close(): Promise<void>;
}

export async function startDocumentServer(
  answer: (path: string, origin: string, response: ServerResponse, request: IncomingMessage) => void,
): Promise<DocumentServer> {
  const authorities = getCACertificates('default');
  setDefaultCACertificates([...authorities, SELF_SIGNED.cert]);
  const asked: string[] = [];
  const server = createServer(SELF_SIGNED, (request, response) => {
    asked.push(request.url!);
    answer(request.url!, origin, response, request);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const origin = `https://localhost:${(server.address() as AddressInfo).port}`;
  return {
    origin,
    asked,
    async close() {
      setDefaultCACertificates(authorities);
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
