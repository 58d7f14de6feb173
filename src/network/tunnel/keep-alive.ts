import type { Socket } from 'node:net';
import type { ClientHttp2Session } from 'node:http2';

/** Silence is counted in turns, not in time: a process that slept must not take its proxies for dead. */
const TURNS = 4;

export interface KeepAliveOptions {
  readonly session: ClientHttp2Session;
  /** The socket below it. */
  readonly wire: Socket;
  readonly silenceMs: number;
  /** Nothing came, and nothing of what waits to be sent was taken, for that long. */
  readonly silent: () => void;
}

/** Pings a proxy and watches whether it lives. Returns how to stop. */
export function keepAlive({ session, wire, silenceMs, silent }: KeepAliveOptions): () => void {
  let read = wire.bytesRead;
  let taken = 0;
  let backlog = false;
  let missed = 0;
  let asked = false;
  const timer = setInterval(() => {
    const nowTaken = wire.bytesWritten - wire.writableLength;
    // A slow line that is full of a large request brings no answers and is alive all the same.
    const alive = wire.bytesRead !== read || (backlog && nowTaken !== taken);
    read = wire.bytesRead;
    taken = nowTaken;
    backlog = wire.writableLength > 0;
    missed = alive ? 0 : missed + 1;
    if (missed >= TURNS) return silent();
    if (!asked && !session.destroyed) {
      asked = true;
      session.ping(() => {
        asked = false;
      });
    }
  }, silenceMs / TURNS).unref();
  return () => clearInterval(timer);
}
