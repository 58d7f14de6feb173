import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import {
  connect,
  constants,
  type ClientHttp2Session,
  type ClientHttp2Stream,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
} from 'node:http2';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { WebSocketServer, type WebSocket } from 'ws';
import { createSocketStream } from '../../src/gateway/network/tunnel/socket-stream.ts';
import {
  CONTROL_PATH,
  TUNNEL_PROTOCOL,
  type GatewayMessage,
  type ProxyMessage,
} from '../../src/gateway/network/tunnel-wire.ts';
import { TUNNEL_PATH } from '../../src/server/config/names.ts';
import { findFreePort } from './free-port.ts';

/** Only the gateway's side of tunnels, on real sockets. The test decides every message to a proxy. */
export interface TunnelRouter {
  /** `http://127.0.0.1:<port>`, with `prefix` if there is one. */
  readonly url: string;
  readonly port: number;
  /** All dials so far, accepted or refused. */
  readonly dials: IncomingMessage[];
  /** Resolves with the next connection whose control stream is open. Each connection is returned once. */
  next(): Promise<RouterEnd>;
  /** Closes every connection like a crash, and stops listening. */
  stop(): Promise<void>;
}

/** A reply that came through the tunnel. */
export interface TunnelReply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/** One connection, as the gateway sees it. */
export interface RouterEnd {
  readonly session: ClientHttp2Session;
  readonly socket: WebSocket;
  readonly request: IncomingMessage;
  /** Resolves with the proxy's next message. Each message is returned once. */
  heard(): Promise<ProxyMessage>;
  say(message: GatewayMessage): void;
  /** Sends a welcome, and `registered` for all services of the registration. Resolves with the registration. */
  accept(provider?: string): Promise<Extract<ProxyMessage, { type: 'register' }>>;
  /** Opens a stream. Without `body` the caller writes the body. */
  open(headers: OutgoingHttpHeaders, body?: string | Buffer): ClientHttp2Stream;
  /** Makes one call and reads the whole reply. */
  call(headers: OutgoingHttpHeaders, body?: string | Buffer): Promise<TunnelReply>;
  /** Settles when the WebSocket is closed. */
  readonly closed: Promise<void>;
}

export interface TunnelRouterOptions {
  readonly port?: number;
  /** The path below which the router is served. */
  readonly prefix?: string;
  /** Refuses a dial with an HTTP status. null accepts it. */
  readonly reject?: (
    request: IncomingMessage,
  ) => { readonly status: number; readonly body: string; readonly headers?: Readonly<Record<string, string>> } | null;
}

export async function startTunnelRouter(options: TunnelRouterOptions = {}): Promise<TunnelRouter> {
  const server = createServer((_request, response) => response.writeHead(404).end());
  const sockets = new WebSocketServer({
    noServer: true,
    handleProtocols: (protocols) => (protocols.has(TUNNEL_PROTOCOL) ? TUNNEL_PROTOCOL : false),
  });
  const dials: IncomingMessage[] = [];
  const wires = new Set<Duplex>();
  const waiting = createQueue<RouterEnd>();

  server.on('upgrade', (request: IncomingMessage, wire: Duplex, head: Buffer) => {
    dials.push(request);
    wires.add(wire);
    wire.on('close', () => wires.delete(wire));
    wire.on('error', () => {});
    const rejected =
      request.url === `${options.prefix ?? ''}${TUNNEL_PATH}` ? options.reject?.(request) : { status: 404, body: '{}' };
    if (rejected) {
      const headers = {
        'content-length': String(Buffer.byteLength(rejected.body)),
        connection: 'close',
        ...rejected.headers,
      };
      const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
      return wire.end(`HTTP/1.1 ${rejected.status} No\r\n${lines.join('')}\r\n${rejected.body}`);
    }
    sockets.handleUpgrade(request, wire, head, (socket) => waiting.put(routerEnd(socket, request)));
  });
  server.listen(options.port ?? (await findFreePort()), '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}${options.prefix ?? ''}`,
    port,
    dials,
    next: waiting.take,
    async stop() {
      server.close();
      for (const wire of wires) wire.destroy();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}

function routerEnd(socket: WebSocket, request: IncomingMessage): RouterEnd {
  const duplex = createSocketStream(socket);
  duplex.on('error', () => {});
  const session = connect('http://tunnel', { createConnection: () => duplex, settings: { enablePush: false } });
  session.on('error', () => {});
  const control = session.request({ ':method': 'POST', ':path': CONTROL_PATH }, { endStream: false });
  control.on('error', () => {});
  const messages = createQueue<ProxyMessage>();
  let text = '';
  control.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
    const lines = text.split('\n');
    text = lines.pop()!;
    for (const line of lines) messages.put(JSON.parse(line) as ProxyMessage);
  });

  const end: RouterEnd = {
    session,
    socket,
    request,
    closed: once(socket, 'close').then(() => {}),
    heard: messages.take,
    say: (message) => void control.write(`${JSON.stringify(message)}\n`),
    async accept(provider = 'provider') {
      end.say({
        type: 'welcome',
        provider,
        account: `account-of-${provider}`,
        challenge: 'challenge',
        version: '1.2.3',
      });
      const message = await end.heard();
      if (message.type !== 'register') throw new Error(`the proxy said ${message.type} before it registered`);
      const document = JSON.parse(message.document) as Record<string, { name: string }[]>;
      const services = ['models', 'tools', 'agents', 'images', 'videos'].flatMap((kind) =>
        (document[kind] ?? []).map(({ name }) => name),
      );
      end.say({ type: 'registered', revision: 1, services });
      return message;
    },
    open(headers, body) {
      const stream = session.request(
        { ':method': 'POST', ...headers },
        { endStream: body === undefined && headers[':method'] === 'GET' },
      );
      stream.on('error', () => {});
      if (body !== undefined) stream.end(body);
      return stream;
    },
    async call(headers, body) {
      const stream = end.open(headers, body ?? (headers[':method'] === 'GET' ? undefined : ''));
      return readReply(stream);
    },
  };
  return end;
}

/** Reads a whole reply. Rejects if its stream is reset. */
export function readReply(stream: ClientHttp2Stream): Promise<TunnelReply> {
  return new Promise((resolve, reject) => {
    let head: IncomingHttpHeaders & { ':status'?: number | undefined } = {};
    const chunks: Buffer[] = [];
    stream.on('response', (headers) => (head = headers));
    stream.on('data', (chunk: Buffer) => chunks.push(chunk));
    stream.on('close', () => {
      const body = Buffer.concat(chunks);
      if (stream.rstCode === constants.NGHTTP2_NO_ERROR && stream.readableEnded)
        resolve({ status: head[':status'] ?? 0, headers: head, body });
      else
        reject(
          new Error(
            `the reply was reset with code ${stream.rstCode} after status ${head[':status']} and ${body.length} bytes`,
          ),
        );
    });
  });
}

/** A queue. Each value is taken once, in order. The first waiting taker gets the next value. */
function createQueue<T>(): { put(value: T): void; take(): Promise<T> } {
  const values: T[] = [];
  const takers: ((value: T) => void)[] = [];
  return {
    put(value) {
      const taker = takers.shift();
      if (taker) taker(value);
      else values.push(value);
    },
    take: () => (values.length > 0 ? Promise.resolve(values.shift()!) : new Promise((resolve) => takers.push(resolve))),
  };
}
