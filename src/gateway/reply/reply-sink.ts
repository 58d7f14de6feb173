import type { FastifyReply } from 'fastify';

/** Where a reply is written to: the client's connection, or something that also keeps a copy. */
export interface ReplySink {
  /** The client is gone: nothing that is written arrives. */
  readonly closed: boolean;
  head(status: number, headers: Readonly<Record<string, string | number>>): void;
  /** Sends the head at once, without waiting for the first bytes. */
  flush(): void;
  /** False when the client reads slower than this: wait for `drained` before writing more. */
  write(bytes: Uint8Array): boolean;
  /** Resolves when more can be written, or the client is gone. A client that takes nothing for too long is made to go. */
  drained(): Promise<void>;
  end(bytes: Uint8Array): void;
  /** Ends a reply that is not complete: `bytes` tell why. */
  fail(bytes: Uint8Array): void;
}

/**
 * Writes past Fastify, straight to the socket. `onGone` is called when the client leaves before the end. One that stays, but takes nothing for
 * `stallMs` while bytes wait for it, is cut off: else it could read all but the end of a reply and hold its settlement up until the lock expires,
 * or leave a reply that has ended in memory.
 */
export function createHttpSink(reply: FastifyReply, stallMs: number, onGone: () => void): ReplySink {
  const { raw } = reply;
  let ended = false;
  let closed = raw.destroyed || raw.socket?.destroyed === true;
  let wake: (() => void) | null = null;
  const resume = () => {
    wake?.();
    wake = null;
  };
  raw.on('close', () => {
    closed = true;
    resume();
    if (!ended) onGone();
  });
  if (closed) onGone();

  const end = (bytes: Uint8Array) => {
    ended = true;
    raw.end(bytes);
    // What its client does not fetch is not kept for ever either. Node cuts the connection when nothing moves for so long, and sets its own limit after the end.
    if (!raw.writableFinished) raw.setTimeout(stallMs);
  };

  return {
    get closed() {
      return closed;
    },
    head(status, headers) {
      reply.hijack();
      raw.writeHead(status, { ...reply.getHeaders(), ...headers } as Record<string, string | number>);
    },
    flush() {
      raw.flushHeaders();
    },
    write(bytes) {
      return raw.write(bytes);
    },
    drained() {
      if (closed || !raw.writableNeedDrain) return Promise.resolve();
      return new Promise((resolve) => {
        const stalled = setTimeout(() => raw.destroy(), stallMs);
        wake = () => {
          clearTimeout(stalled);
          resolve();
        };
        raw.once('drain', resume);
      });
    },
    end,
    fail: end,
  };
}
