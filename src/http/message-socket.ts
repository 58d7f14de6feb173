import type { WebSocket } from 'ws';
import { Timers } from '#wire';

/**
 * WebSocket options of both ends. By default the library answers every ping and buffers the answers for a peer that
 * does not read them, and keeps each fragment of a message in a buffer of its own.
 */
export const MESSAGE_SOCKET_OPTIONS = {
  perMessageDeflate: false,
  autoPong: false,
  maxFragments: 1_024,
  maxBufferedChunks: 16_384,
} as const;

/** Bytes of received messages that wait for their reader before nothing more is read from the peer. */
const WAITING_BYTES_MAX = 256 * 1024;
/** Bytes that wait for the peer to read them before `send` waits too. */
const UNSENT_BYTES_MAX = 1024 * 1024;
/** Time for the peer to answer a close. */
const CLOSE_MS = 2_000;
/** The most bytes of a reason, by RFC 6455 section 5.5.1. */
const REASON_BYTES_MAX = 123;

interface MessageSocketOptions {
  /** How long the peer may take to read what waits for it, in milliseconds. Then it counts as gone. */
  readonly stallMs: number;
  /** How long the peer may send nothing, not even an answer to a ping, in milliseconds. */
  readonly silenceMs: number;
}

/**
 * A WebSocket with backpressure in both directions: messages are read one by one, and a peer that reads slowly holds
 * back its sender.
 */
export class MessageSocket {
  /** How the peer closed it; null while it is open. 1006 without a close. */
  closed: { readonly code: number; readonly reason: string } | null = null;
  readonly #socket: WebSocket;
  readonly #options: MessageSocketOptions;
  readonly #timers = new Timers();
  readonly #messages: (Buffer | null)[] = [];
  #waitingBytes = 0;
  #wake: (() => void) | null = null;
  #answering = false;
  #heard = true;

  /** Create it before anything can arrive. `socket`: with MESSAGE_SOCKET_OPTIONS. */
  constructor(socket: WebSocket, options: MessageSocketOptions) {
    this.#socket = socket;
    this.#options = options;
    socket.binaryType = 'nodebuffer';
    socket.on('message', (data, isBinary) => this.#arrived(isBinary ? null : (data as Buffer)));
    socket.on('ping', (data) => this.#pinged(data));
    socket.on('pong', () => (this.#heard = true));
    // A close follows.
    socket.on('error', () => {});
    socket.on('close', (code, reason) => {
      this.closed = { code, reason: reason.toString('utf8') };
      this.#timers.clear();
      this.#woken();
    });
    this.#timers.every(options.silenceMs / 2, () => this.#listen());
  }

  /** The bytes of the next text message; `binary` for a binary one, null once it is closed and all is read. */
  async next(): Promise<Buffer | 'binary' | null> {
    while (this.#messages.length === 0) {
      if (this.closed !== null) return null;
      // oxlint-disable-next-line no-await-in-loop -- one message after the other
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
    const message = this.#messages.shift()!;
    this.#waitingBytes -= message?.byteLength ?? 0;
    if (this.#messages.length === 0 && this.#socket.isPaused) this.#socket.resume();
    return message ?? 'binary';
  }

  /**
   * Sends a text. null, or a promise that resolves once the peer has read enough of what waits for it, or is gone. The
   * next text is sent after that. A closed socket ignores it.
   */
  send(text: string): Promise<void> | null {
    const socket = this.#socket;
    if (socket.readyState !== socket.OPEN) return null;
    if (socket.bufferedAmount < UNSENT_BYTES_MAX) {
      socket.send(text);
      return null;
    }
    return new Promise((resolve) => {
      const stalled = setTimeout(() => socket.terminate(), this.#options.stallMs);
      socket.send(text, () => {
        clearTimeout(stalled);
        resolve();
      });
    });
  }

  /** Closes it after what was sent. A peer that does not answer is disconnected. */
  close(code: number, reason: string): void {
    const socket = this.#socket;
    if (socket.readyState === socket.CLOSED) return;
    socket.resume();
    socket.close(
      code,
      Buffer.from(reason)
        .subarray(0, REASON_BYTES_MAX)
        .toString('utf8')
        .replace(/\uFFFD+$/, ''),
    );
    const late = setTimeout(() => socket.terminate(), CLOSE_MS);
    socket.once('close', () => clearTimeout(late));
  }

  terminate(): void {
    this.#socket.terminate();
  }

  #arrived(message: Buffer | null): void {
    this.#heard = true;
    this.#messages.push(message);
    this.#waitingBytes += message?.byteLength ?? 0;
    if (this.#waitingBytes > WAITING_BYTES_MAX || this.#messages.length > MESSAGES_MAX) this.#socket.pause();
    this.#woken();
  }

  #woken(): void {
    const wake = this.#wake;
    this.#wake = null;
    wake?.();
  }

  /** One answer at a time (RFC 6455 section 5.5.3 allows to answer only the newest ping). */
  #pinged(data: Buffer): void {
    this.#heard = true;
    if (this.#answering || this.#socket.readyState !== this.#socket.OPEN) return;
    this.#answering = true;
    this.#socket.pong(data, undefined, () => (this.#answering = false));
  }

  #listen(): void {
    // What a paused socket gets is not seen, so its silence says nothing.
    if (!this.#heard && !this.#socket.isPaused) return this.#socket.terminate();
    this.#heard = false;
    if (this.#socket.readyState === this.#socket.OPEN) this.#socket.ping();
  }
}

/** Received messages that wait for their reader, however small. */
const MESSAGES_MAX = 256;
