import { createSlowPolls } from './slow-polls.ts';
import type { Poll, Observation, Task } from './task.ts';

/** The most concurrent slow polls. */
const SLOW_POLLS_MAX = 64;
/** Timeout of a poll. */
export const POLL_MS = 10_000;

export interface TimedPollOptions {
  /** The id of a task's provider. */
  readonly providerOf: (task: Task) => string;
  /** Milliseconds after which a poll is slow. */
  readonly slowMs: number;
  /** Aborts all polls. */
  readonly closed: AbortSignal;
}

/**
 * Polls a task. Calls `onSlow` when the poll becomes slow. Resolves with null if the poll fails, takes longer than
 * POLL_MS, or is ended by `closed` or because too many polls are slow.
 */
type TimedPoll = (poll: Poll, task: Task, onSlow: () => void) => Promise<Observation | null>;

export function createTimedPoll({ providerOf, slowMs, closed }: TimedPollOptions): TimedPoll {
  const slowPolls = createSlowPolls(SLOW_POLLS_MAX);
  return async (poll, task, onSlow) => {
    if (closed.aborted) return null;
    const over = new AbortController();
    const end = () => over.abort();
    const slowPoll = { provider: providerOf(task), end };
    const slowTimer = setTimeout(() => {
      onSlow();
      slowPolls.add(slowPoll);
    }, slowMs);
    const timer = setTimeout(end, POLL_MS);
    closed.addEventListener('abort', end, { once: true });
    const ended = new Promise<null>((resolve) => {
      over.signal.addEventListener('abort', () => resolve(null), { once: true });
    });
    try {
      return await Promise.race([poll(task, over.signal), ended]);
    } catch {
      return null;
    } finally {
      clearTimeout(slowTimer);
      clearTimeout(timer);
      slowPolls.delete(slowPoll);
      closed.removeEventListener('abort', end);
    }
  };
}
