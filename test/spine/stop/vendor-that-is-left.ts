import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { StreamedWire } from './streamed-wires.ts';

/* A vendor that streams a word every few milliseconds, and counts what it makes when its client has left. */

/** What the vendor does when the client has left. */
export const MANNERS = ['stops', 'reports', 'goes on', 'dies'] as const;
export type Manner = (typeof MANNERS)[number];

const WORD_MS = 10;
/** So many words has a whole answer. */
export const WORDS_MAX = 600;
/** The usage that it reports if its client has left, less than what it has said. */
export const REPORTED = { prompt: 40, completion: 21 };

/** One request at the vendor. */
export interface AskedVendor {
  /** Words that it has made, and those of them that it could write. A word is a token. */
  readonly made: number;
  readonly written: number;
  /** Bytes that it could write after its client had left. */
  readonly bytesAfter: number;
  /** Resolves when the connection of the request has ended, whoever has ended it. */
  readonly closed: Promise<void>;
  /** Resolves when its work has ended. */
  readonly idle: Promise<void>;
  /** Its client has left. `isReadOn`: the vendor is quick from now on. */
  left(isReadOn: boolean): void;
}

export interface LeftVendor {
  readonly url: string;
  stop(): void;
  /** The next request: resolves when its first words are written. */
  next(wire: StreamedWire, manner: Manner): Promise<AskedVendor>;
}

export async function startVendor(wordMs = WORD_MS): Promise<LeftVendor> {
  let waiting: { wire: StreamedWire; manner: Manner; begun: (asked: AskedVendor) => void } | null = null;
  const server: Server = createServer((request, response) => {
    request.resume().once('end', () => {
      const { wire, manner, begun } = waiting!;
      waiting = null;
      begun(answer(wire, manner, response, wordMs));
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    stop() {
      server.close();
      server.closeAllConnections();
    },
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    next: (wire, manner) => new Promise((begun) => (waiting = { wire, manner, begun })),
  };
}

function answer(wire: StreamedWire, manner: Manner, response: ServerResponse, wordMs: number): AskedVendor {
  const closed = Promise.withResolvers<void>();
  const idle = Promise.withResolvers<void>();
  let [made, written, bytesAfter, hasLeft, isOpen] = [0, 0, 0, false, true];
  const write = (piece: string | Buffer) => {
    if (!isOpen) return;
    response.write(piece);
    if (hasLeft) bytesAfter += Buffer.byteLength(piece);
  };
  const over = () => {
    clearInterval(timer);
    idle.resolve();
  };
  const end = (words: number, prompt: number) => {
    write(wire.end({ prompt, completion: words }));
    if (isOpen) response.end();
    over();
  };
  /** All words that it has not made, at once. */
  const hurry = () => {
    while (made < WORDS_MAX) say();
    end(made, REPORTED.prompt);
  };
  response.on('close', () => {
    isOpen = false;
    closed.resolve();
    if (manner === 'goes on') hurry();
    else over();
  });
  response.writeHead(200, { 'content-type': wire.type });
  write(wire.begin);
  const say = () => {
    made++;
    if (isOpen) written++;
    write(wire.word);
  };
  const timer = setInterval(() => (made < WORDS_MAX ? say() : end(made, REPORTED.prompt)), wordMs);
  return {
    get made() {
      return made;
    },
    get written() {
      return written;
    },
    get bytesAfter() {
      return bytesAfter;
    },
    closed: closed.promise,
    idle: idle.promise,
    left(isReadOn) {
      hasLeft = true;
      if (isReadOn) hurry();
      if (manner === 'reports') end(REPORTED.completion, REPORTED.prompt);
      if (manner === 'dies') response.destroy();
    },
  };
}
