import { setTimeout as sleep } from 'node:timers/promises';

/** Before a stream is asked for again that its server ended; twice as long after each failure. */
const RETRY_MS = 1_000;
const RETRY_MS_MAX = 30_000;
/** Streams in a row on which nothing was heard. */
const FAILURES_MAX = 8;

/**
 * Listens to a server until `signal` aborts, again where the server ends its stream. `listen` calls `heard` once the
 * server has said something, and resolves with whether listening again is of use.
 */
export async function keepListening(
  signal: AbortSignal,
  listen: (heard: () => void) => Promise<boolean>,
): Promise<void> {
  for (let failures = 0; failures < FAILURES_MAX && !signal.aborted; failures++) {
    const heard = () => {
      failures = 0;
    };
    if (!(await listen(heard))) return;
    await sleep(Math.min(RETRY_MS * 2 ** failures, RETRY_MS_MAX), undefined, { signal }).catch(() => {});
  }
}
