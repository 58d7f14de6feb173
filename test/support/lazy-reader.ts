import { once } from 'node:events';
import type { Socket } from 'node:net';
import { openSocket } from './raw-http.ts';

/** A client on a raw socket that reads nothing of its answer until the test says so. */
export interface LazyReader {
  readonly socket: Socket;
  /** Reads until the connection ends. Resolves with the last 400 characters. */
  readAll(): Promise<string>;
  /** Reads a little of what has arrived. */
  sip(): void;
}

export async function postLazily(origin: string, key: string, body: unknown): Promise<LazyReader> {
  const socket = await openSocket(origin);
  let tail = '';
  socket.on('data', (part: Buffer) => {
    tail = (tail + part.toString('latin1', Math.max(0, part.length - 400))).slice(-400);
  });
  socket.pause();
  const text = JSON.stringify(body);
  socket.write(
    `POST /api/v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\ncontent-type: application/json\r\n` +
      `content-length: ${Buffer.byteLength(text)}\r\nconnection: close\r\n\r\n${text}`,
  );
  return {
    socket,
    async readAll() {
      const closed = once(socket, 'close');
      socket.resume();
      await closed;
      return tail;
    },
    sip() {
      socket.resume();
      setImmediate(() => socket.pause());
    },
  };
}
