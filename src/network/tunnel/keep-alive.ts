import type { Socket } from 'node:net';

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
  let taken = 0;
  let backlog = false;
  let missed = 0;
  let asked = false;
  const timer = setInterval(() => {
    const nowTaken = wire.bytesWritten - wire.writableLength;
    // A slow connection that is busy with a large request returns no answers, but it is alive while it takes bytes.
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
