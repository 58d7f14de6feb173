import type { ClientHttp2Session } from 'node:http2';
import type { CallSession } from './tunnels.ts';

/** The calls that run through one tunnel. */
export interface CountedCalls {
  readonly session: CallSession;
  running(): number;
  /** Calls `then` once no call runs, at once where none does. A later call of it takes the place of an earlier one. */
  whenIdle(then: () => void): void;
}

/** Counts the streams that are opened on a session from now on. */
export function countCalls(session: ClientHttp2Session): CountedCalls {
  let running = 0;
  let idle: (() => void) | null = null;
  const ended = () => {
    running -= 1;
    if (running === 0) idle?.();
  };
  return {
    session: {
      get closed() {
        return session.closed;
      },
      get destroyed() {
        return session.destroyed;
      },
      request(headers, options) {
        const call = session.request(headers, options);
        running += 1;
        call.once('close', ended);
        return call;
      },
    },
    running: () => running,
    whenIdle(then) {
      if (running === 0) return then();
      idle = then;
    },
  };
}
