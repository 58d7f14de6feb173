import type { OutgoingHttpHeader, ServerResponse } from 'node:http';
import type { FastifyReply } from 'fastify';

/** The target of a reply: the client's connection, or something that also keeps a copy. */
export interface ReplySink {
  /** The client is gone: nothing that is written arrives. */
  readonly closed: boolean;
  head(status: number, headers: Readonly<Record<string, string | number>>): void;
  /** Sends the head at once, without waiting for the first bytes. */
  flush(): void;
  /** False when the client reads slower than this: wait for `drained` before writing more. */
  write(bytes: Uint8Array): boolean;
  /**
   * Resolves when more can be written, or the client is gone. A client that takes nothing for too long is made to go.
   */
  drained(): Promise<void>;
  /** Small ends are best given as text: Node sends a text together with the head, in one write. */
  end(bytes: Uint8Array | string): void;
  /** Ends a reply that is not complete: `bytes` tell why. */
  fail(bytes: Uint8Array): void;
}

/** The client's connection itself. */
export interface ClientSink extends ReplySink {
  /** Breaks the connection off: the reply is not complete, and its head says that it will be. */
  cut(): void;
}

type Headers = Readonly<Record<string, string | number>>;

/**
 * Writes past Fastify, straight to the socket. `onGone` is called when the client leaves before the end. One that
 * stays, but takes nothing for `stallMs` while bytes wait for it, is cut off: else it could read all but the end of
 * a reply and hold its settlement up until the lock expires, or leave a reply that has ended in memory. `common`
 * gives headers that the head gets beside its own, such as those of the rate limit: Fastify's hooks do not run.
 */
export function createHttpSink(
  reply: FastifyReply,
  stallMs: number,
  onGone: () => void,
  common: () => Headers,
): ClientSink {
  return new HttpSink(reply, stallMs, onGone, common);
}

type AnyHeaders = Readonly<Record<string, OutgoingHttpHeader | undefined>>;
const NONE: AnyHeaders = {};

/**
 * Adds names and values in turn, but for names that one of the others has. Node writes such a list as it is. Of objects
 * that are spread into one it would write the same at twice the time.
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

let fastifyHeaders: symbol | null | undefined;

/**
 * The headers that hooks have set. Fastify copies them beside those of the raw reply, which has none; without the
 * member that they are in, that is what is asked.
 */
function headersOf(reply: FastifyReply): AnyHeaders {
  if (fastifyHeaders === undefined)
    fastifyHeaders =
      Object.getOwnPropertySymbols(reply).find(({ description }) => description === 'fastify.reply.headers') ?? null;
  return fastifyHeaders === null
    ? reply.getHeaders()
    : (reply as unknown as Readonly<Record<symbol, AnyHeaders>>)[fastifyHeaders]!;
}

/**
 * A class, as there is one for each reply: eight closures for each were a twelfth of all that a call keeps in memory.
 */
class HttpSink implements ClientSink {
  closed: boolean;
  readonly #reply: FastifyReply;
  readonly #raw: ServerResponse;
  readonly #common: () => Headers;
  readonly #stallMs: number;
  #ended = false;
  #wake: (() => void) | null = null;

  constructor(reply: FastifyReply, stallMs: number, onGone: () => void, common: () => Headers) {
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

  head(status: number, headers: Headers): void {
    this.#reply.hijack();
    const lines: OutgoingHttpHeader[] = [];
    const own = addLines(lines, headers, NONE, NONE);
    const common = addLines(lines, this.#common(), own, NONE);
    addLines(lines, headersOf(this.#reply), own, common);
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
      this.#wake = () => {
        clearTimeout(stalled);
        resolve();
      };
      this.#raw.once('drain', () => this.#resume());
    });
  }

  end(bytes: Uint8Array | string): void {
    this.#ended = true;
    this.#raw.end(bytes);
    // What its client does not fetch is not kept for ever either. Node cuts the connection when nothing moves for
    // so long, and sets its own limit after the end. Of most replies nothing waits: the system took all of it.
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
