import { setTimeout as sleep } from 'node:timers/promises';

/** The pause before a stream that its server ended is opened again. It doubles with each failure. */
const RETRY_MS = 1_000;
const RETRY_MS_MAX = 120_000;

/** Resolves after `ms` milliseconds, or earlier if `signal` aborts. */
type Pause = (ms: number, signal: AbortSignal) => Promise<void>;

const untilAborted: Pause = (ms, signal) => sleep(ms, undefined, { signal }).catch(() => {});

/**
 * Listens to a server until `signal` aborts, and again if the server ends its stream. It does not give up, because a
 * server that was away asks its questions to clients on this stream. `listen` calls `heard` once the server has sent
 * something, and resolves to whether to listen again.
 */
export async function keepListening(
  signal: AbortSignal,
  listen: (heard: () => void) => Promise<boolean>,
  pause: Pause = untilAborted,
): Promise<void> {
  for (let failures = 0; !signal.aborted; failures++) {
    const heard = () => {
      failures = 0;
    };
    if (!(await listen(heard))) return;
    await pause(Math.min(RETRY_MS * 2 ** failures, RETRY_MS_MAX), signal);
  }
}
