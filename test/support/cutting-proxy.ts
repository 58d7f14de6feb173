import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

/** When a connection is cut: before the server gets the client's message, or after the server has answered it. */
export type Cut = 'before' | 'after';

export interface CuttingProxy {
  /** The target URL, through the proxy. */
  readonly url: string;
  /** Number of connections that were cut. */
  readonly cuts: number;
  close(): Promise<void>;
}

/**
 * A TCP proxy that cuts the connection at messages that contain `marker`, if `decide` says so. Both sides only see that
 * the connection ended.
 */
export async function startCuttingProxy(
  target: string,
  marker: string,
  decide: () => Cut | null,
): Promise<CuttingProxy> {
  const upstream = new URL(target);
  const wanted = Buffer.from(marker);
  const sockets = new Set<Socket>();
  let cuts = 0;
  const server = createServer({ noDelay: true }, (client) => {
    const remote = connect({ host: upstream.hostname, port: Number(upstream.port), noDelay: true });
    let answerDropped = false;
    const cut = () => {
      cuts += 1;
      client.destroy();
      remote.destroy();
    };
    for (const socket of [client, remote]) {
      sockets.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => {
        sockets.delete(socket);
        client.destroy();
        remote.destroy();
      });
    }
    client.on('data', (bytes: Buffer) => {
      const where = bytes.includes(wanted) ? decide() : null;
      if (where === 'before') return cut();
      answerDropped ||= where === 'after';
      remote.write(bytes);
    });
    remote.on('data', (bytes: Buffer) => {
      if (!answerDropped) client.write(bytes);
      // The transaction is over: the server reports that it is ready and idle.
      else if (bytes.subarray(-6).equals(Buffer.from([0x5a, 0, 0, 0, 5, 0x49]))) cut();
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const own = new URL(target);
  own.port = String((server.address() as AddressInfo).port);
  return {
    url: own.href,
    get cuts() {
      return cuts;
    },
    async close() {
      server.close();
      for (const socket of sockets) socket.destroy();
      await once(server, 'close');
    },
  };
}
