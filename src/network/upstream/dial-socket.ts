import { WebSocket } from 'ws';
import { UpstreamFailure } from '#wire';
import { toFailure } from '#wire/replies';
import { scrubOf } from '#security';
import { MESSAGE_SOCKET_OPTIONS, MessageSocket } from '#http';
import type { DirectEndpoint } from '#catalog';

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
 * Opens a WebSocket to the address of an offer, with its key. Redirects are not followed, so the key goes nowhere else.
 * Rejects with UpstreamFailure, or with the reason of the signal.
 */
export type DialSocket = (endpoint: DirectEndpoint, options: DialOptions) => Promise<MessageSocket>;

export const dialSocket: DialSocket = (endpoint, options) =>
  new Promise((resolve, reject) => {
    const { path, headers, timeoutMs, messageBytesMax, stallMs, silenceMs, signal } = options;
    if (signal.aborted) return reject(signal.reason as Error);
    const socket = new WebSocket(`${endpoint.baseUrl.replace(/^http/, 'ws')}${path}`, {
      ...MESSAGE_SOCKET_OPTIONS,
      maxPayload: messageBytesMax,
      followRedirects: false,
      handshakeTimeout: timeoutMs,
      headers: { ...headers, ...endpoint.headers },
    });
    const messages = new MessageSocket(socket, { stallMs, silenceMs });
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
        const text = scrubOf(endpoint.headers)(Buffer.concat(chunks).toString('utf8'));
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

/** The failure for a handshake that was answered with a status. */
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
