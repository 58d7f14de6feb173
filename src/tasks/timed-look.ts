import { createSlowLooks } from './slow-looks.ts';
import type { Look, Sight, Task } from './task.ts';

/** The most concurrent slow looks. */
const SLOW_LOOKS_MAX = 64;
/** Timeout of a look. */
export const LOOK_MS = 10_000;

export interface TimedLookOptions {
  /** The id of a task's provider. */
  readonly providerOf: (task: Task) => string;
  /** Milliseconds after which a look is slow. */
  readonly slowMs: number;
  /** Aborts all looks. */
  readonly closed: AbortSignal;
}

/**
 * Looks at a task. Calls `onSlow` when the look becomes slow. Resolves with null if the look fails, takes longer than
 * LOOK_MS, or is ended by `closed` or because too many looks are slow.
 */
type TimedLook = (look: Look, task: Task, onSlow: () => void) => Promise<Sight | null>;

export function createTimedLook({ providerOf, slowMs, closed }: TimedLookOptions): TimedLook {
  const slowLooks = createSlowLooks(SLOW_LOOKS_MAX);
  return async (look, task, onSlow) => {
    if (closed.aborted) return null;
    const over = new AbortController();
    const end = () => over.abort();
    const slowLook = { provider: providerOf(task), end };
    const slowTimer = setTimeout(() => {
      onSlow();
      slowLooks.add(slowLook);
    }, slowMs);
    const timer = setTimeout(end, LOOK_MS);
    closed.addEventListener('abort', end, { once: true });
    const ended = new Promise<null>((resolve) => {
      over.signal.addEventListener('abort', () => resolve(null), { once: true });
    });
    try {
      return await Promise.race([look(task, over.signal), ended]);
    } catch {
      return null;
    } finally {
      clearTimeout(slowTimer);
      clearTimeout(timer);
      slowLooks.delete(slowLook);
      closed.removeEventListener('abort', end);
    }
  };
}
