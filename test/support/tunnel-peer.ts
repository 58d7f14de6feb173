import { createHash } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import {
  performServerHandshake,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2';
import { createWebSocketStream, WebSocket } from 'ws';
import { createSocketStream } from '../../src/gateway/network/tunnel/socket-stream.ts';
import { readEmptyRequest } from '../../src/gateway/network/tunnel/http2-streams.ts';
import {
  CONTROL_PATH,
  registrationText,
  TUNNEL_PROTOCOL,
  type GatewayMessage,
} from '../../src/gateway/network/tunnel-wire.ts';
import { TUNNEL_PATH } from '../../src/server/config/names.ts';
import { DOMAIN, signInHeaders, type TestWallet } from './wallets.ts';

/** Only the proxy's side of a tunnel, on real sockets. The test decides every message to the gateway. */
export interface TunnelPeer {
  readonly socket: WebSocket;
  readonly session: ServerHttp2Session;
  /** The gateway's first message. */
  readonly welcome: Extract<GatewayMessage, { type: 'welcome' }>;
  /** Resolves with the gateway's next message. Each message is returned once. Rejects if the connection ends before. */
  heard(): Promise<GatewayMessage>;
  /** Writes a message, or any other value, to the control stream. */
  say(message: unknown): void;
  /** Registers a document, signed unless another signature is given. Resolves with the answer. */
  register(
    document?: unknown,
    fields?: { readonly router?: string; readonly signature?: string | null; readonly challenge?: string },
  ): Promise<GatewayMessage>;
  /** Open streams of calls. */
  readonly streams: Set<ServerHttp2Stream>;
  /** Settles with the code and the reason when the socket is closed. */
  readonly closed: Promise<{ readonly code: number; readonly reason: string }>;
  /** Breaks the connection, like SIGKILL. */
  kill(): void;
}

export interface TunnelPeerOptions {
  /** The gateway's address, `http://…`. */
  readonly url: string;
  readonly wallet?: TestWallet;
  /** Used instead of a wallet's sign-in. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Answers a call. */
  readonly serve?: (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => void;
  /** The most calls that may run at once. */
  readonly streamsMax?: number;
  /** Sends data of several streams in one WebSocket message, like our own proxy. */
  readonly together?: boolean;
  /** The flow-control window of each stream and of the connection. Default 64 KiB. */
  readonly window?: number;
}

/** A registration document with one model. */
export const documentOf = (name = 'peer/model', provider = 'Peer', prompt = '1') => ({
  version: 1,
  models: [
    {
      name,
      display_name: name,
      provider_name: provider,
      context_length: 1000,
      pricing: { prompt, completion: '1' },
      params: { model: name },
    },
  ],
});

/** Dials in and waits for the welcome. Rejects with status and text if the gateway answers with an HTTP error. */
export async function dialPeer(options: TunnelPeerOptions): Promise<TunnelPeer> {
  const { wallet, streamsMax = 5_000, window = 65_535 } = options;
  const headers = options.headers ?? (wallet ? await signInHeaders(wallet) : {});
  const socket = new WebSocket(options.url.replace('http', 'ws') + TUNNEL_PATH, [TUNNEL_PROTOCOL], {
    headers,
    perMessageDeflate: false,
  });
  const duplex = options.together ? createSocketStream(socket) : createWebSocketStream(socket);
  duplex.on('error', () => {});
  const closed = new Promise<{ code: number; reason: string }>((resolve) => {
    socket.on('close', (code, reason) => resolve({ code, reason: String(reason) }));
  });
  socket.on('error', () => {});
  await new Promise<void>((resolve, reject) => {
    socket.once('open', resolve);
    socket.once('error', reject);
    socket.once('unexpected-response', (_request, response: IncomingMessage) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
      response.on('end', () => reject(Object.assign(new Error(`${response.statusCode} ${text}`), { response, text })));
    });
  });
  const session = performServerHandshake(duplex, {
    settings: { maxConcurrentStreams: streamsMax, initialWindowSize: window },
    maxSessionMemory: 1_000,
    streamResetBurst: 1_000_000,
    streamResetRate: 1_000_000,
  });
  session.on('error', () => {});
  // The library's stream ends instead of closing. A session that writes to it later would throw inside Node.
  socket.once('close', () => session.destroy());
  session.setLocalWindowSize(window);
  const streams = new Set<ServerHttp2Stream>();
  const messages: GatewayMessage[] = [];
  const waiting: { resolve(message: GatewayMessage): void; reject(error: Error): void }[] = [];
  const control = Promise.withResolvers<ServerHttp2Stream>();
  session.on('stream', (stream, requestHeaders) => {
    stream.on('error', () => {});
    readEmptyRequest(stream);
    if (requestHeaders[':path'] === CONTROL_PATH) {
      let text = '';
      stream.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk;
        const lines = text.split('\n');
        text = lines.pop()!;
        for (const line of lines) {
          const message = JSON.parse(line) as GatewayMessage;
          const next = waiting.shift();
          if (next) next.resolve(message);
          else messages.push(message);
        }
      });
      stream.respond({ ':status': 200 });
      control.resolve(stream);
      return;
    }
    streams.add(stream);
    stream.once('close', () => streams.delete(stream));
    options.serve?.(stream, requestHeaders);
  });
  void closed.then(({ code, reason }) => {
    for (const one of waiting.splice(0)) one.reject(new Error(`the connection ended: ${code} ${reason}`));
  });
  const heard = () =>
    new Promise<GatewayMessage>((resolve, reject) => {
      const message = messages.shift();
      if (message) resolve(message);
      else if (socket.readyState === WebSocket.CLOSED) reject(new Error('the connection has ended'));
      else waiting.push({ resolve, reject });
    });
  const line = await control.promise;
  const welcome = await heard();
  if (welcome.type !== 'welcome') throw new Error(`the gateway said ${welcome.type} before its welcome`);
  const say = (message: unknown) => {
    if (line.writable)
      line.write(typeof message === 'string' || Buffer.isBuffer(message) ? message : `${JSON.stringify(message)}\n`);
  };
  return {
    socket,
    session,
    welcome,
    heard,
    say,
    streams,
    closed,
    async register(document = documentOf(), { router = DOMAIN, signature, challenge = welcome.challenge } = {}) {
      const text = typeof document === 'string' ? document : JSON.stringify(document);
      const digest = createHash('sha256').update(text).digest('hex');
      const own = wallet
        ? await wallet.sign(registrationText({ router, provider: welcome.provider, challenge, digest }))
        : null;
      say({ type: 'register', document: text, router, signature: signature === undefined ? own : signature });
      return heard();
    },
    kill: () => socket.terminate(),
  };
}

/** Reads a whole request body. */
export async function bodyOf(stream: ServerHttp2Stream): Promise<string> {
  const chunks: Buffer[] = [];
  stream.on('data', (chunk: Buffer) => chunks.push(chunk));
  if (!stream.readableEnded) await once(stream, 'end');
  return Buffer.concat(chunks).toString();
}
