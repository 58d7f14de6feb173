import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { type ClientOptions, WebSocket } from 'ws';
import { UpstreamFailure } from '#wire';
import { toFailure } from '#wire/replies';
import { scrubOf } from '#security';
import { MESSAGE_SOCKET_OPTIONS, MessageSocket } from '#http';
import type { DirectEndpoint, TunnelEndpoint } from '#catalog';
import { CONNECTION_HEADER } from '../peers.ts';
import { SOCKET_HEADER } from '../tunnel-wire.ts';
import { headOf, judge, notConnected, sessionTo, type TunnelUpstreamOptions } from './tunnel-upstream.ts';

interface DialOptions {
  /** Path and query below the endpoint's base address, with a leading slash. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Longest time to connect, in milliseconds. */
  readonly timeoutMs: number;
  /** The largest message that is read, in bytes. */
  readonly messageBytesMax: number;
  readonly stallMs: number;
  readonly silenceMs: number;
  readonly signal: AbortSignal;
}

/**
 * Opens a WebSocket to the address of an offer, with its key, or through the tunnel of its provider, whose proxy adds
 * the key. Redirects are not followed, so the key goes nowhere else. Rejects with UpstreamFailure, or with the reason
 * of the signal.
 */
export type DialSocket = (endpoint: DirectEndpoint | TunnelEndpoint, options: DialOptions) => Promise<Dialled>;

interface Dialled {
  readonly socket: MessageSocket;
  /**
   * Whether its tunnel takes no further calls: the proxy leaves, or the gateway of the tunnel stops, and the connection
   * ends soon. The provider may have another one meanwhile.
   */
  readonly isLeaving: () => boolean;
}

type Tunnelled = Pick<TunnelUpstreamOptions, 'tunnels' | 'peers'> & {
  readonly registry: Pick<TunnelUpstreamOptions['registry'], 'locate'>;
};

export const createDialSocket =
  (tunnelled: Tunnelled): DialSocket =>
  async (endpoint, options) => {
    if (endpoint.kind !== 'direct') return dialThrough(tunnelled, endpoint, options);
    const url = `${endpoint.baseUrl.replace(/^http/, 'ws')}${options.path}`;
    const headers = { ...options.headers, ...endpoint.headers };
    return { socket: await dial(url, endpoint.headers, options, { headers }), isLeaving: () => false };
  };

/** Opens a WebSocket in a stream of a tunnel, which takes the place of its connection. */
async function dialThrough(
  { registry, ...way }: Tunnelled,
  { provider, basePath }: TunnelEndpoint,
  options: DialOptions,
): Promise<Dialled> {
  if (options.signal.aborted) throw options.signal.reason;
  const location = registry.locate(provider);
  const session = sessionTo(location, way);
  if (location === null || session === null) throw notConnected();
  const stream = session.request(
    {
      ...headOf('POST', basePath + options.path),
      [SOCKET_HEADER]: 'websocket',
      ...(location.kind === 'elsewhere' ? { [CONNECTION_HEADER]: location.connection } : {}),
    },
    { endStream: false },
  );
  // The socket above reports errors, except after its end.
  stream.on('error', () => {});
  let refusal: UpstreamFailure | null = null;
  stream.once('response', (head) => {
    const verdict = judge(head);
    if (verdict === null && head[':status'] === 200) return;
    refusal = verdict instanceof UpstreamFailure ? verdict : notConnected();
    stream.destroy();
  });
  try {
    const socket = await dial(`ws://tunnel${options.path}`, {}, options, {
      headers: { ...options.headers },
      // Node takes any duplex here, and the types of ws a socket alone.
      createConnection: () => stream as Duplex as Socket,
    });
    return { socket, isLeaving: () => registry.locate(provider)?.connection !== location.connection };
  } catch (error) {
    stream.destroy();
    throw refusal ?? error;
  }
}

/** `secrets`: headers whose values are removed from what the provider says. */
const dial = (
  url: string,
  secrets: DirectEndpoint['headers'],
  { timeoutMs, messageBytesMax, stallMs, silenceMs, signal }: DialOptions,
  more: ClientOptions,
): Promise<MessageSocket> =>
  new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason as Error);
    const socket = new WebSocket(url, {
      ...MESSAGE_SOCKET_OPTIONS,
      maxPayload: messageBytesMax,
      followRedirects: false,
      handshakeTimeout: timeoutMs,
      ...more,
    });
    const messages = new MessageSocket(socket, { stallMs, silenceMs }, null);
    const stop = () => {
      reject(signal.reason as Error);
      socket.terminate();
    };
    signal.addEventListener('abort', stop, { once: true });
    const failed = (failure: Error) => {
      signal.removeEventListener('abort', stop);
      reject(failure);
    };
    socket.once('open', () => {
      signal.removeEventListener('abort', stop);
      resolve(messages);
    });
    socket.once('error', (error) => failed(toUnreachable(error)));
    socket.once('unexpected-response', (_request, response) => {
      const chunks: Buffer[] = [];
      let bytes = 0;
      const end = () => {
        const text = scrubOf(secrets)(Buffer.concat(chunks).toString('utf8'));
        failed(refusedWith(response.statusCode ?? 0, text));
        socket.terminate();
      };
      response.on('data', (chunk: Buffer) => {
        chunks.push(chunk);
        bytes += chunk.byteLength;
        if (bytes > ERROR_BYTES_MAX) end();
      });
      response.once('end', end);
      response.once('error', end);
    });
  });

const ERROR_BYTES_MAX = 16 * 1024;

function refusedWith(status: number, text: string): UpstreamFailure {
  if (status >= 400) return toFailure(status, Buffer.from(text), undefined);
  return new UpstreamFailure(`it answered a WebSocket handshake with status ${status}`, {
    status,
    retryable: true,
    attributedTo: 'provider',
  });
}

const toUnreachable = (cause: Error): UpstreamFailure =>
  new UpstreamFailure('the WebSocket to the provider could not be opened', {
    retryable: true,
    attributedTo: 'provider',
    unsent: true,
    unreachable: true,
    cause,
  });
