import { setTimeout as sleep } from 'node:timers/promises';

/** The pause before a stream that its server ended is opened again. It doubles with each failure. */
const RETRY_MS = 1_000;
const RETRY_MS_MAX = 30_000;
/** Most streams in a row on which the server sent nothing. */
const FAILURES_MAX = 8;

/**
 * Listens to a server until `signal` aborts, and again if the server ends its stream. `listen` calls `heard` once the
 * server has sent something, and resolves to whether to listen again.
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
