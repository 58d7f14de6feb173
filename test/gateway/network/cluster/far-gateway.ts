import { once } from 'node:events';
import {
  connect,
  createServer,
  type ClientHttp2Session,
  type ClientHttp2Stream,
  type OutgoingHttpHeaders,
  type ServerHttp2Stream,
} from 'node:http2';
import type { AddressInfo } from 'node:net';
import {
  createPeerListener,
  type PeerListener,
  type PeerListenerOptions,
} from '../../../../src/gateway/network/peer-listener.ts';
import {
  createPeers,
  type PeersOptions,
  CONNECTION_HEADER,
  type Peers,
} from '../../../../src/gateway/network/peers.ts';
import { watchEnd } from '../../../../src/gateway/network/tunnel/http2-streams.ts';

export const SECRET = Buffer.from('what the gateways of this test share');
/** The connection that the far gateway holds. */
export const CONNECTION = 'c1';

export type OnStream = (
  stream: ServerHttp2Stream,
  headers: Record<string, string | string[] | undefined>,
  rawHeaders: readonly string[],
) => void;

/** A gateway that holds a tunnel, as other gateways see it. The far end of the tunnel is a plain HTTP/2 server. */
export interface FarGateway {
  readonly listener: PeerListener;
  /** The tunnel's session, for what is asked of it without another gateway between. */
  readonly tunnel: ClientHttp2Session;
  readonly port: number;
  stop(): Promise<void>;
}

export async function startFarGateway(
  onStream: OnStream,
  options: Partial<PeerListenerOptions> = {},
): Promise<FarGateway> {
  const proxy = createServer({
    strictSingleValueFields: false,
    maxSessionMemory: 512,
    streamResetBurst: 1e6,
    streamResetRate: 1e6,
  });
  proxy.on('stream', (stream: ServerHttp2Stream, headers, _flags, rawHeaders) => {
    stream.on('error', () => {});
    onStream(stream, headers, rawHeaders);
  });
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  // Node knows that clients have this option, its types do not.
  const lenient = { maxSessionMemory: 512, strictSingleValueFields: false };
  const tunnel = connect(`http://127.0.0.1:${(proxy.address() as AddressInfo).port}`, lenient);
  tunnel.on('error', () => {});
  const listener = createPeerListener({
    secret: SECRET,
    host: '127.0.0.1',
    port: 0,
    ...options,
  });
  await listener.listen();
  listener.share({ tunnels: { session: (connection) => (connection === CONNECTION ? tunnel : null) } });
  return {
    listener,
    tunnel,
    port: Number(new URL(listener.url).port),
    async stop() {
      await listener.close(0);
      tunnel.destroy();
      const closed = new Promise((resolve) => proxy.close(resolve));
      await closed;
    },
  };
}

/** What a test started, to be ended after it whatever happened. */
export function createScene() {
  const ends: (() => Promise<void>)[] = [];
  return {
    async far(onStream: OnStream, options?: Partial<PeerListenerOptions>): Promise<FarGateway> {
      const far = await startFarGateway(onStream, options);
      ends.push(far.stop);
      return far;
    },
    peers(options: Partial<PeersOptions> = {}): Peers {
      const peers = createPeers({ secret: SECRET, ...options });
      ends.push(() => peers.close());
      return peers;
    },
    later(end: () => Promise<void>) {
      ends.push(end);
    },
    async end() {
      for (const end of ends.splice(0).reverse()) await end();
    },
  };
}

/** A stream to the far gateway's tunnel. */
export function open(
  peers: Peers,
  url: string,
  headers: OutgoingHttpHeaders = {},
  endStream = false,
): ClientHttp2Stream {
  const stream = peers
    .session({ id: 'far', url })
    .request(
      { ':method': 'POST', ':path': '/model/one/chat/completions', [CONNECTION_HEADER]: CONNECTION, ...headers },
      { endStream },
    );
  stream.on('error', () => {});
  return stream;
}

export interface Reply {
  readonly status: number;
  readonly headers: Record<string, string | string[] | undefined>;
  readonly rawHeaders: readonly string[];
  readonly body: Buffer;
}

/** Waits for the whole reply; rejects when the stream is reset, with its code. */
export async function reply(stream: ClientHttp2Stream): Promise<Reply> {
  let head: Omit<Reply, 'body'> | null = null;
  const whole = watchEnd(stream);
  stream.once('response', (headers, _flags, rawHeaders) => {
    head = { status: headers[':status']!, headers, rawHeaders };
  });
  const chunks: Buffer[] = [];
  stream.on('data', (chunk: Buffer) => chunks.push(chunk));
  await closed(stream);
  if (stream.rstCode !== 0 || head === null || !(whole() || stream.endAfterHeaders))
    throw new Error(`reset with code ${stream.rstCode}`);
  return { ...(head as Omit<Reply, 'body'>), body: Buffer.concat(chunks) };
}

/** Resolves when a stream or session is gone. */
export async function closed(stream: {
  readonly destroyed: boolean;
  once(event: 'close', listener: () => void): unknown;
}): Promise<void> {
  if (!stream.destroyed) await new Promise<void>((resolve) => stream.once('close', () => resolve()));
}
