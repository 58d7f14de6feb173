import type { Socket } from 'node:net';

/** Silence is counted in turns, not in time: a process that slept must not take its peers for dead. */
const TURNS = 4;

interface KeepAliveOptions {
  /** The socket below the tunnel. */
  readonly wire: Socket;
  readonly silenceMs: number;
  /** Makes the peer answer. Not called again before `answered` was. */
  readonly ping: (answered: () => void) => void;
  /** For `silenceMs` nothing came, and the peer took nothing of what waits to be sent. */
  readonly silent: () => void;
}

/** Pings the other end of a tunnel and watches whether it lives. Returns how to stop. */
export function keepAlive({ wire, silenceMs, ping, silent }: KeepAliveOptions): () => void {
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
    if (asked) return;
    asked = true;
    ping(() => {
      asked = false;
    });
  }, silenceMs / TURNS).unref();
  return () => clearInterval(timer);
}
