import type { Duplex } from 'node:stream';
import type { WebSocket } from 'ws';
import { Timers } from '#wire';

/**
 * WebSocket options of both ends. By default the library answers every ping and buffers the answers for a peer that
 * does not read them, keeps each fragment of a message in a buffer of its own, and gives out all frames of a read at
 * once, which are thousands of small ones. Here it gives out one message, ping or pong in each turn of the event loop.
 */
export const MESSAGE_SOCKET_OPTIONS = {
  perMessageDeflate: false,
  autoPong: false,
  allowSynchronousEvents: false,
  maxFragments: 1_024,
  maxBufferedChunks: 16_384,
} as const;

/** Bytes of received messages that wait for their reader before nothing more is read from the peer. */
const WAITING_BYTES_MAX = 256 * 1024;
/**
 * Bytes that are not of a message weigh as many: they are frames of six bytes or so, such as fragments, of which each
 * takes as long as the reading of 200 bytes.
 */
const FRAMING_WEIGHT = 32;
/** Bytes of later messages that may have been read with the last one. */
const READ_AHEAD_BYTES = 128 * 1024;
/** Pings and unasked pongs in a burst, and in a second. */
const PINGS_AT_ONCE = 100;
const PINGS_PER_SECOND = 10;
/** Bytes that wait for the peer to read them before `send` waits too. */
const UNSENT_BYTES_MAX = 1024 * 1024;
const TEXT = { binary: false };
/** How often a peer from which nothing is read is tried. */
const PROBE_MS = 2_000;
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
  readonly #gone = new AbortController();
  /** While nothing is read from the peer. */
  #probing: NodeJS.Timeout | null = null;
  readonly #socket: WebSocket;
  readonly #options: MessageSocketOptions;
  readonly #timers = new Timers();
  readonly #messages: (Buffer | null)[] = [];
  #waitingBytes = 0;
  #wake: (() => void) | null = null;
  #answering = false;
  #isAlive = true;
  #pings = PINGS_AT_ONCE;
  #pingAt = 0;
  /** Bytes that came beside those of messages. */
  #framing = -READ_AHEAD_BYTES;

  /**
   * Create it before anything can arrive. `socket`: with MESSAGE_SOCKET_OPTIONS. `wire`: the socket below it; null if
   * it is not open yet.
   */
  constructor(socket: WebSocket, options: MessageSocketOptions, wire: Duplex | null) {
    this.#socket = socket;
    this.#options = options;
    socket.binaryType = 'nodebuffer';
    if (wire !== null) this.#countBytes(wire);
    // A listener that is added before `open` would take the first bytes away from the library.
    else socket.once('upgrade', ({ socket: tcpSocket }) => socket.once('open', () => this.#countBytes(tcpSocket)));
    socket.on('message', (data, isBinary) => this.#arrived(data as Buffer, isBinary));
    socket.on('ping', (data) => this.#pinged(data));
    socket.on('pong', () => this.#ponged());
    // A close follows.
    socket.on('error', () => {});
    socket.on('close', (code, reason) => {
      this.closed = { code, reason: reason.toString('utf8') };
      this.#timers.clear();
      this.#gone.abort();
      this.#woken();
    });
    this.#timers.every(options.silenceMs / 2, () => this.#listen());
  }

  get gone(): AbortSignal {
    return this.#gone.signal;
  }

  /** The bytes of the next text message; `binary` for a binary one, null once it is closed and all is read. */
  async next(): Promise<Buffer | 'binary' | null> {
    while (this.#messages.length === 0) {
      if (this.closed !== null) return null;
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
    const message = this.#messages.shift()!;
    this.#waitingBytes -= message?.byteLength ?? 0;
    if (this.#messages.length === 0 && this.#socket.isPaused) {
      clearInterval(this.#probing ?? undefined);
      this.#probing = null;
      this.#socket.resume();
    }
    return message ?? 'binary';
  }

  /**
   * The bytes of a message of `next`, and what the bytes beside messages that came until now weigh, such as those of
   * pings and of the thousand fragments of a message.
   */
  weigh(message: Buffer | 'binary'): number {
    const beside = Math.max(0, this.#framing);
    this.#framing -= beside;
    return message.length + beside * FRAMING_WEIGHT;
  }

  /**
   * Sends a text, or its bytes, which are UTF-8. null, or a promise that resolves once the peer has read enough of what
   * waits for it, or is gone. The next text is sent after that. A closed socket ignores it.
   */
  send(text: string | Buffer): Promise<void> | null {
    const socket = this.#socket;
    if (socket.readyState !== socket.OPEN) return null;
    if (socket.bufferedAmount < UNSENT_BYTES_MAX) {
      socket.send(text, TEXT);
      return null;
    }
    return new Promise((resolve) => {
      const stalled = setTimeout(() => socket.terminate(), this.#options.stallMs);
      socket.send(text, TEXT, () => {
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

  #arrived(message: Buffer, isBinary: boolean): void {
    this.#isAlive = true;
    this.#messages.push(isBinary ? null : message);
    this.#framing -= message.byteLength;
    this.#waitingBytes += isBinary ? 0 : message.byteLength;
    if (this.#waitingBytes > WAITING_BYTES_MAX || this.#messages.length > MESSAGES_MAX) this.#pause();
    this.#woken();
  }

  /** A socket that is not read does not tell that its peer has left, but pings to it fail then. */
  #pause(): void {
    this.#socket.pause();
    this.#probing ??= this.#timers.every(PROBE_MS, () => {
      if (this.#socket.readyState === this.#socket.OPEN) this.#socket.ping();
    });
  }

  #woken(): void {
    const wake = this.#wake;
    this.#wake = null;
    wake?.();
  }

  /** One answer at a time (RFC 6455 section 5.5.3 allows to answer only the newest ping). */
  #pinged(data: Buffer): void {
    this.#isAlive = true;
    if (this.#isFlooded() || this.#answering || this.#socket.readyState !== this.#socket.OPEN) return;
    this.#answering = true;
    this.#socket.pong(data, undefined, () => (this.#answering = false));
  }

  #ponged(): void {
    this.#isAlive = true;
    this.#isFlooded();
  }

  #isFlooded(): boolean {
    const now = performance.now();
    this.#pings = Math.min(PINGS_AT_ONCE, this.#pings + ((now - this.#pingAt) * PINGS_PER_SECOND) / 1000) - 1;
    this.#pingAt = now;
    if (this.#pings >= 0) return false;
    if (this.#socket.readyState === this.#socket.OPEN) {
      this.close(1008, `More than ${PINGS_AT_ONCE} pings or pongs came at once`);
      this.#socket.pause();
    }
    return true;
  }

  #countBytes(wire: Duplex): void {
    wire.on('data', (chunk: Buffer) => (this.#framing += chunk.byteLength));
  }

  #listen(): void {
    // What a paused socket gets is not seen, so its silence says nothing.
    if (!this.#isAlive && !this.#socket.isPaused) return this.#socket.terminate();
    this.#isAlive = false;
    if (this.#socket.readyState === this.#socket.OPEN) this.#socket.ping();
  }
}

/** Received messages that wait for their reader, however small. */
const MESSAGES_MAX = 256;
