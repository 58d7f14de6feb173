import type { OutgoingHttpHeader, ServerResponse } from 'node:http';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { FastifyReply } from 'fastify';

/** The target of a reply: the client's connection, or a wrapper that also keeps a copy. */
export interface ReplySink {
  /** True if the client is gone. Then written bytes are lost. */
  readonly closed: boolean;
  head(status: number, headers: Readonly<Record<string, string | number>>): void;
  /** Sends the head at once, before the first bytes of the body. */
  flush(): void;
  /** Returns false if the client reads too slowly. Then wait for `drained` before writing more. */
  write(bytes: Uint8Array): boolean;
  /**
   * Resolves when more can be written or the client is gone. If the client takes nothing for too long, its connection
   * is closed.
   */
  drained(): Promise<void>;
  /** Ends the reply. Pass a small end as a string, because Node sends a string and the head in one write. */
  end(bytes: Uint8Array | string): void;
  /** Ends an incomplete reply. `bytes` explain why. */
  fail(bytes: Uint8Array): void;
}

/** The client's connection. */
export interface ClientSink extends ReplySink {
  /** Closes the connection, for an incomplete reply whose head has promised a complete one. */
  cut(): void;
}

type SinkHeaders = Readonly<Record<string, string | number>>;

/**
 * Writes directly to the HTTP response, without Fastify. `onGone` is called if the client leaves before the end. A
 * client that takes no bytes for `stallMs` while bytes are waiting is disconnected. Otherwise it could delay the
 * settlement until the lock expires by not reading the end of a reply, or keep a finished reply in memory. `common`
 * gives additional headers for the head, such as those of the rate limit, because Fastify's hooks do not run here.
 */
export function createHttpSink(
  reply: FastifyReply,
  stallMs: number,
  onGone: () => void,
  common: () => SinkHeaders,
): ClientSink {
  return new HttpSink(reply, stallMs, onGone, common);
}

type AnyHeaders = Readonly<Record<string, OutgoingHttpHeader | undefined>>;
const NONE: AnyHeaders = {};

/**
 * Adds names and values to a flat list, except names that `before` or `alsoBefore` has. Node writes a flat list
 * directly. Spreading the objects into one takes twice as long.
 */
function addLines<H extends AnyHeaders>(
  lines: OutgoingHttpHeader[],
  headers: H,
  before: AnyHeaders,
  alsoBefore: AnyHeaders,
): H {
  for (const name in headers) {
    const value = headers[name];
    if (value !== undefined && before[name] === undefined && alsoBefore[name] === undefined) lines.push(name, value);
  }
  return headers;
}

/**
 * A class, because there is one instance per reply. Eight closures per reply took a twelfth of the memory of a call.
 */
class HttpSink implements ClientSink {
  closed: boolean;
  readonly #reply: FastifyReply;
  readonly #raw: ServerResponse;
  readonly #common: () => SinkHeaders;
  readonly #stallMs: number;
  #ended = false;
  #wake: (() => void) | null = null;

  constructor(reply: FastifyReply, stallMs: number, onGone: () => void, common: () => SinkHeaders) {
    this.#reply = reply;
    this.#common = common;
    this.#raw = reply.raw;
    this.#stallMs = stallMs;
    this.closed = reply.raw.destroyed || reply.raw.socket?.destroyed === true;
    reply.raw.on('close', () => {
      this.closed = true;
      this.#resume();
      if (!this.#ended) onGone();
    });
    if (this.closed) onGone();
  }

  head(status: number, headers: SinkHeaders): void {
    this.#reply.hijack();
    const lines: OutgoingHttpHeader[] = [];
    const own = addLines(lines, headers, NONE, NONE);
    const common = addLines(lines, this.#common(), own, NONE);
    // Those that hooks of Fastify have set.
    addLines(lines, this.#reply.getHeaders(), own, common);
    this.#raw.writeHead(status, lines);
  }

  flush(): void {
    this.#raw.flushHeaders();
  }

  write(bytes: Uint8Array): boolean {
    return this.#raw.write(bytes);
  }

  drained(): Promise<void> {
    if (this.closed || !this.#raw.writableNeedDrain) return Promise.resolve();
    return new Promise((resolve) => {
      const stalled = setTimeout(() => this.#raw.destroy(), this.#stallMs);
      const wake = () => {
        clearTimeout(stalled);
        resolve();
      };
      this.#wake = wake;
      this.#raw.once('drain', () => this.#resume());
    });
  }

  end(bytes: Uint8Array | string): void {
    this.#ended = true;
    this.#raw.end(bytes);
    // Bytes that the client does not read must not stay in memory for ever. Node closes the connection after this
    // timeout, and sets its own timeout after the end. For most replies no bytes are waiting, because the operating
    // system took them all.
    if (this.#raw.writableLength > 0 && !this.#raw.destroyed) this.#raw.setTimeout(this.#stallMs);
  }

  fail(bytes: Uint8Array): void {
    this.end(bytes);
  }

  cut(): void {
    this.#ended = true;
    this.#raw.destroy();
  }

  #resume(): void {
    this.#wake?.();
    this.#wake = null;
  }
}

/** The operating system accepts this many bytes in a fraction of a millisecond. */
const SLICE_BYTES = 256 * 1024;

/** Cuts large bytes into slices. Write each slice in a separate turn of the event loop. */
export function* slicesOf(bytes: Uint8Array): Generator<Uint8Array, void, undefined> {
  for (let at = 0; at < bytes.byteLength; at += SLICE_BYTES) yield bytes.subarray(at, at + SLICE_BYTES);
}

/**
 * Writes large bytes to a client, one slice per turn of the event loop. One write of 40 MB could block all streams of
 * the process, because the operating system would accept much of it in a single call. Waits for a slow client. Stops
 * early if the client is gone.
 */
export async function writeSlices(bytes: Uint8Array, sink: ReplySink): Promise<void> {
  let first = true;
  for (const slice of slicesOf(bytes)) {
    if (!first) await nextTurn();
    first = false;
    if (sink.closed) return;
    if (!sink.write(slice)) await sink.drained();
  }
}

/**
 * Writes pieces in slices and ends the reply with the last piece. Waits for the client between pieces, so that a piece
 * is computed only when the client has read the pieces before it.
 */
export async function endInSlices(pieces: Iterable<Uint8Array>, sink: ReplySink): Promise<void> {
  let last: Uint8Array | null = null;
  for (const piece of pieces) {
    if (last !== null) await writeSlices(last, sink);
    if (sink.closed) return;
    last = piece;
  }
  sink.end(last ?? '');
}
