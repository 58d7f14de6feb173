import type { IncomingHttpHeaders } from 'node:http';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Scrub } from '#security';
import { CodingFault, contentCoding, ownTurn } from '#wire';
import { malformed } from '#wire/replies';
import type { ReplyHold, UpstreamReply } from '#call';

/**
 * A reply with a queue between a connection, which pushes chunks, and a reader, which pulls them. The subclass bounds
 * the queue: it pauses the connection, and `emptied` tells it to continue.
 */
export abstract class PulledReply implements UpstreamReply {
  abstract readonly scrub: Scrub;
  memory?: ReplyHold;
  status = 0;
  headers: IncomingHttpHeaders = {};
  /** Chunks that are not read yet. */
  protected queue: Uint8Array[] = [];
  protected queuedBytes = 0;
  /** The end of the reply has arrived. */
  protected complete = false;
  protected error: Error | null = null;
  readonly #burst = new Burst();
  /** The content of a reply that came in a content coding, although none was asked for. */
  #content: AsyncIterator<Uint8Array> | null = null;
  #contentEnded = false;
  #head: Promise<UpstreamReply> | null = null;
  #resolveHead: ((reply: UpstreamReply) => void) | null = null;
  #rejectHead: ((error: Error) => void) | null = null;
  #wake: (() => void) | null = null;

  /** The promise is created on first use, so that a failure without a waiter causes no unhandled rejection. */
  get head(): Promise<UpstreamReply> {
    this.#head ??= new Promise((resolve, reject) => {
      if (this.status !== 0) resolve(this);
      else if (this.error !== null) reject(this.error);
      this.#resolveHead = resolve;
      this.#rejectHead = reject;
    });
    return this.#head;
  }

  get ended(): boolean {
    return this.#content === null ? this.complete && this.queue.length === 0 : this.#contentEnded;
  }

  /** Called when the reader has emptied the queue, so that the connection may continue. */
  protected abstract emptied(): void;
  abstract abort(reason: Error): void;
  abstract discard(): void;

  /** Returns all queued chunks at once, because a burst arrives as many small chunks in one turn of the event loop. */
  read(): readonly Uint8Array[] | null | Promise<readonly Uint8Array[] | null> {
    return this.#content === null ? this.#pull() : this.#readContent(this.#content);
  }

  async #readContent(content: AsyncIterator<Uint8Array>): Promise<readonly Uint8Array[] | null> {
    try {
      const next = await content.next();
      this.#contentEnded = next.done === true;
      return next.done ? null : [next.value];
    } catch (error) {
      throw error instanceof CodingFault ? malformed(`it sent a body that is ${error.message}`, error) : error;
    }
  }

  async *#chunks(): AsyncGenerator<Uint8Array, void, undefined> {
    for (let chunks = await this.#pull(); chunks !== null; chunks = await this.#pull()) yield* chunks;
  }

  #pull(): readonly Uint8Array[] | null | Promise<readonly Uint8Array[] | null> {
    const burst = this.#burst.over;
    return burst === null && this.#isReady ? this.#takeChunks() : this.#readLater(burst);
  }

  get #isReady(): boolean {
    return this.queue.length > 0 || this.complete || this.error !== null;
  }

  async #readLater(burst: Promise<unknown> | null): Promise<readonly Uint8Array[] | null> {
    if (burst !== null) await burst;
    if (!this.#isReady) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    return this.#takeChunks();
  }

  #takeChunks(): readonly Uint8Array[] | null {
    if (this.queue.length > 0) {
      const chunks = this.queue;
      this.#burst.add(this.queuedBytes);
      this.clearQueue();
      this.emptied();
      return chunks;
    }
    if (this.error) throw this.error;
    return null;
  }

  protected clearQueue(): void {
    this.queue = [];
    this.queuedBytes = 0;
  }

  protected begun(status: number, headers: IncomingHttpHeaders): void {
    this.status = status;
    const coding = contentCoding.codingOf(headers['content-encoding']);
    if (coding === null || !contentCoding.isKnown(coding)) this.headers = headers;
    else {
      // Its length is that of the coded bytes.
      const { 'content-encoding': _, 'content-length': __, ...rest } = headers;
      this.headers = rest;
      this.#content = contentCoding.decoded(this.#chunks(), coding);
    }
    this.#resolveHead?.(this);
  }

  protected failed(error: Error): void {
    this.error = error;
    this.#rejectHead?.(error);
  }

  protected wakeReader(): void {
    this.#wake?.();
    this.#wake = null;
  }
}

/**
 * Bytes for one reader in one turn of the event loop. Without this limit, a reply that arrives as fast as it is read
 * would keep its reader running and block the event loop.
 */
const TURN_BYTES = 64 * 1024;
/** Replies larger than this take turns, so that only one of them continues in each turn of the event loop. */
const LARGE_BYTES = 512 * 1024;

/** Limits how fast one reply is given to its reader. */
class Burst {
  #inTurn = 0;
  #bytes = 0;

  add(bytes: number): void {
    this.#inTurn += bytes;
    this.#bytes += bytes;
  }

  /** Settles when more bytes may be given. null if they may be given now. */
  get over(): Promise<unknown> | null {
    if (this.#inTurn < TURN_BYTES) return null;
    this.#inTurn = 0;
    return this.#bytes > LARGE_BYTES ? ownTurn() : nextTurn();
  }
}
