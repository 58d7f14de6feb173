import { Duplex } from 'node:stream';
import type { Socket } from 'node:net';
import type { WebSocket } from 'ws';
import { type FrameMeter, MeteredBytes } from '#wire/frame-meter';
import { TUNNEL_MESSAGE_BYTES_MAX } from '../tunnel-wire.ts';

/** A WebSocket as a duplex stream of bytes. */
export interface SocketStream extends Duplex {
  /** Drops everything that arrives from now on. Written bytes are still sent. */
  deafen(): void;
}

/**
 * The longest message that is sent. A longer one would delay the bytes behind it, and its receiver must buffer the
 * whole message.
 */
const MESSAGE_BYTES_MAX = 64 * 1024;

/**
 * Bytes that may wait in memory for a slow socket before backpressure reaches the session. An HTTP/2 session of Node
 * reads nothing while one of its writes is pending. So two busy ends would deadlock if this were less than the bytes
 * that flow control allows one of them to send.
 */
const SEND_BUFFER_BYTES_MAX = 8 * 1024 * 1024;

/** Limits for the work that the other end can cause with few bytes. */
interface StreamBounds {
  readonly meter: FrameMeter;
  /** The socket below the WebSocket. */
  readonly wire: Socket;
  /** Called when the other end sends frames without use, or too many pings or tiny frames. Nothing more is read. */
  readonly flooded: (why: string) => void;
}

/** WebSocket pings in a burst, and in a second. This project's proxy sends none, because HTTP/2 has its own pings. */
const PINGS_AT_ONCE = 100;
const PINGS_PER_SECOND = 10;
/** Bytes of a small WebSocket frame without its payload. A message may be split into a thousand frames. */
const FRAMING_BYTES = 6;

/** Time for the other end to close its side, before the socket is terminated. */
const DRAIN_MS = 1_000;
/** Bytes that may still arrive from an end that is not trusted, once nobody reads them. */
const LATE_BYTES_MAX = 256 * 1024;
/** A message takes as long as so many bytes, beside its own. */
const MESSAGE_WEIGHT = 1_024;

/**
 * WebSocket options of both ends. By default the library answers every ping, and buffers the answers for a peer that
 * does not read them. It also keeps each fragment of a message in a separate buffer. These options limit both.
 */
export const SOCKET_OPTIONS = {
  perMessageDeflate: false,
  autoPong: false,
  maxPayload: TUNNEL_MESSAGE_BYTES_MAX,
  maxFragments: 1_024,
  maxBufferedChunks: 16_384,
} as const;

const BINARY = { binary: true, compress: false } as const;

type WriteCallback = (error?: Error | null) => void;

/**
 * A duplex over a WebSocket, for an HTTP/2 session of either side. Bytes that the session writes together become one
 * message. With one message for each frame, as in `createWebSocketStream`, a streamed reply costs its receiver four
 * times as much. Create it before anything can arrive, on the client's side before `open`. `bounds` are for an end that
 * does not trust the other.
 */
export function createSocketStream(socket: WebSocket, bounds: StreamBounds | null = null): SocketStream {
  return new Stream(socket, bounds);
}

class Stream extends Duplex implements SocketStream {
  readonly #socket: WebSocket;
  #deaf = false;
  /** Payload of the newest unanswered ping. null if all are answered. */
  #ping: Buffer | null = null;
  #answering = false;
  /** null: the other end is trusted. */
  readonly #metered: MeteredBytes | null;
  #bytesRead = 0;
  /** Received bytes that belong to no payload, for which no frames were charged yet. */
  #framing = 0;
  /** Weight of what arrived since it is deaf. */
  #late = 0;
  #pings = PINGS_AT_ONCE;
  #pingAt = 0;

  constructor(socket: WebSocket, bounds: StreamBounds | null) {
    // What waits here was metered before, and would be read in one turn.
    const readableHighWaterMark = bounds === null ? MESSAGE_BYTES_MAX : 1;
    super({ readableHighWaterMark, writableHighWaterMark: MESSAGE_BYTES_MAX });
    this.#socket = socket;
    this.#bytesRead = bounds?.wire.bytesRead ?? 0;
    this.#metered =
      bounds &&
      new MeteredBytes({
        ...bounds,
        pass: (bytes) => this.push(bytes),
        pause: () => socket.pause(),
        resume: () => this.#resume(),
      });
    socket.binaryType = 'nodebuffer';
    socket.on('message', (message, isBinary) => {
      if (this.#deaf) return this.#drop((message as Buffer).length);
      if (!isBinary) this.destroy(new Error('a text message on a tunnel'));
      else if (bounds !== null) this.#meter(message as Buffer, bounds);
      else if (!this.push(message)) socket.pause();
    });
    socket.on('ping', (data) => {
      if (this.#metered !== null && this.#pingsTooMuch(this.#metered)) return;
      this.#ping = data;
      this.#answer();
    });
    // A session cannot use a half-closed socket, so a close by either end destroys the stream.
    socket.on('close', () => this.destroy());
    socket.on('error', (error) => this.destroy(error));
  }

  deafen(): void {
    this.#deaf = true;
    if (this.#metered === null) this.#resume();
    else this.#metered.drop();
  }

  override _read(): void {
    if (this.#metered === null) this.#resume();
    else this.#metered.more();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: WriteCallback): void {
    this.#whenOpen(done, () => this.#send([chunk], chunk.byteLength, done));
  }

  override _writev(writes: { readonly chunk: Buffer }[], done: WriteCallback): void {
    this.#whenOpen(done, () => {
      let group: Buffer[] = [];
      let bytes = 0;
      for (const { chunk } of writes) {
        if (bytes > 0 && bytes + chunk.byteLength > MESSAGE_BYTES_MAX) {
          this.#send(group, bytes, null);
          group = [];
          bytes = 0;
        }
        group.push(chunk);
        bytes += chunk.byteLength;
      }
      this.#send(group, bytes, done);
    });
  }

  override _final(done: WriteCallback): void {
    this.#socket.close();
    done();
  }

  override _destroy(error: Error | null, done: WriteCallback): void {
    const socket = this.#socket;
    this.deafen();
    if (socket.readyState === socket.CONNECTING) socket.terminate();
    else if (socket.readyState !== socket.CLOSED) {
      socket.close();
      const late = setTimeout(() => socket.terminate(), DRAIN_MS);
      socket.once('close', () => clearTimeout(late));
    }
    done(error);
  }

  /** Reading what nobody needs takes a millisecond for 3 MB, and the other end may send it until the socket closes. */
  #drop(bytes: number): void {
    this.#late += bytes + MESSAGE_WEIGHT;
    if (this.#metered !== null && this.#late > LATE_BYTES_MAX) this.#socket.pause();
  }

  /** One answer at a time, to the newest ping (RFC 6455, 5.5.3). */
  #answer(): void {
    const data = this.#ping;
    if (data === null || this.#answering || this.#socket.readyState !== this.#socket.OPEN) return;
    this.#ping = null;
    this.#answering = true;
    this.#socket.pong(data, undefined, () => {
      this.#answering = false;
      this.#answer();
    });
  }

  /** Charges for the framing of the message, and passes it on as the meter allows. */
  #meter(message: Buffer, bounds: StreamBounds): void {
    const { meter, wire } = bounds;
    this.#framing += wire.bytesRead - this.#bytesRead - message.length;
    this.#bytesRead = wire.bytesRead;
    // Up to MESSAGE_BYTES_MAX of the difference may be payload of messages that follow, because one read of the socket
    // can contain it.
    const frames = Math.floor((this.#framing - MESSAGE_BYTES_MAX) / FRAMING_BYTES);
    if (frames > 0) {
      meter.charge(frames);
      this.#framing -= frames * FRAMING_BYTES;
    }
    this.#metered!.take(message);
  }

  #pingsTooMuch(metered: MeteredBytes): boolean {
    const now = performance.now();
    this.#pings = Math.min(PINGS_AT_ONCE, this.#pings + ((now - this.#pingAt) * PINGS_PER_SECOND) / 1000) - 1;
    this.#pingAt = now;
    if (this.#pings >= 0) return false;
    metered.flood(`it sent more than ${PINGS_AT_ONCE} WebSocket pings at once`);
    return true;
  }

  #resume(): void {
    if (this.#socket.isPaused) this.#socket.resume();
  }

  #whenOpen(done: WriteCallback, send: () => void): void {
    if (this.#socket.readyState === this.#socket.OPEN) send();
    else if (this.#socket.readyState === this.#socket.CONNECTING) this.#socket.once('open', send);
    else done(new Error('the tunnel is closed'));
  }

  /** Calls `done` at once while few bytes wait. Otherwise it calls `done` after the message is sent. */
  #send(group: readonly Buffer[], bytes: number, done: WriteCallback | null): void {
    const socket = this.#socket;
    const message = group.length === 1 ? group[0]! : Buffer.concat(group, bytes);
    if (done !== null && socket.bufferedAmount + bytes > SEND_BUFFER_BYTES_MAX)
      return socket.send(message, BINARY, done);
    socket.send(message, BINARY);
    done?.();
  }
}

/**
 * Silence is counted in ticks of the timer instead of time, so that a process that was suspended does not take its
 * peers for dead.
 */
const TURNS = 4;

interface KeepAliveOptions {
  /** The socket below the tunnel. */
  readonly wire: Socket;
  readonly silenceMs: number;
  /** Sends a ping. Must call `answered` when the peer answers. Not called again before that. */
  readonly ping: (answered: () => void) => void;
  /** Called if for `silenceMs` nothing arrived, and the peer read none of the waiting bytes. */
  readonly silent: () => void;
}

/** Pings the other end of a tunnel and detects when it is dead. Returns a function that stops this. */
export function keepAlive({ wire, silenceMs, ping, silent }: KeepAliveOptions): () => void {
  let read = wire.bytesRead;
  let written = 0;
  let backlog = false;
  let missed = 0;
  let isPinging = false;
  const timer = setInterval(() => {
    const nowTaken = wire.bytesWritten - wire.writableLength;
    // A slow connection that is busy with a large request returns no answers, but it is alive while it takes bytes.
    const alive = wire.bytesRead !== read || (backlog && nowTaken !== written);
    read = wire.bytesRead;
    written = nowTaken;
    backlog = wire.writableLength > 0;
    missed = alive ? 0 : missed + 1;
    if (missed >= TURNS) return silent();
    if (isPinging) return;
    isPinging = true;
    ping(() => {
      isPinging = false;
    });
  }, silenceMs / TURNS).unref();
  return () => clearInterval(timer);
}
