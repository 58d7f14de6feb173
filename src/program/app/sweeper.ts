import { expireAll } from '#billing/compose';
import type { Ledger } from '#billing';
import type { Logger, OutageLog } from '#observe';
import { isAway } from './foundation.ts';

/** A store whose rows expire. `sweep` removes at most `batch` of them and resolves with the number of removed rows. */
export interface Swept {
  sweep(batch: number): Promise<number>;
  /** It ends what others say is still used, so it rests after a jump of the time, as locks do. */
  readonly restsAfterJump?: boolean;
}

interface SweeperOptions {
  readonly ledger: Ledger;
  readonly logger: Logger;
  readonly outages: OutageLog;
  readonly now: () => number;
  readonly elapsed: () => number;
}

const BATCH = 1_000;
/** If the time goes on by so much more than a monotonic clock, the clock was set, or this machine was suspended. */
const JUMP_MS = 30_000;

/**
 * Every `everyMs`, expires overdue locks and removes old rows of the stores, which have names for the log. After a
 * failure the next sweep tries again. `close` resolves when no sweep is running.
 *
 * After a jump of the time, locks of calls that run would be overdue, and gateways that are there would seem gone. So
 * no lock expires before all that were made before the jump have had their time, `longestLockMs`.
 */
export function openSweeper(
  { ledger, logger, outages, now, elapsed }: SweeperOptions,
  swept: Readonly<Record<string, Swept>>,
  { everyMs, longestLockMs }: { readonly everyMs: number; readonly longestLockMs: number },
): { close(): Promise<void> } {
  let last = { now: now(), elapsed: elapsed() };
  let restUntil = -Infinity;
  const isResting = (): boolean => {
    const before = last;
    last = { now: now(), elapsed: elapsed() };
    const jumpMs = last.now - before.now - (last.elapsed - before.elapsed);
    if (jumpMs > JUMP_MS) {
      restUntil = last.elapsed + longestLockMs;
      logger.warn(
        { jump_s: Math.round(jumpMs / 1_000), rest_s: Math.round(longestLockMs / 1_000) },
        'the time went forward by a jump: no lock expires, and no call counts as lost, until the calls that run have had their time',
      );
    }
    return last.elapsed < restUntil;
  };
  let running: Promise<void> | null = null;
  let closed = false;
  /** Resolves with the error if the database is away. Every other error is logged at once. */
  const expireLocks = async (): Promise<unknown> => {
    try {
      const expired = await expireAll(ledger, now());
      if (expired > 0) logger.warn({ locks: expired }, 'locks expired');
    } catch (error) {
      if (isAway(error)) return error;
      outages.failed('locks', { err: error }, 'the sweep of expired locks failed; it is tried again');
    }
    return null;
  };
  const sweepStore = async (name: string, store: Swept): Promise<unknown> => {
    try {
      for (let count = BATCH; count === BATCH && !closed;) count = await store.sweep(BATCH);
    } catch (error) {
      if (isAway(error)) return error;
      const text = 'old rows of a store could not be removed; it is tried again';
      outages.failed(`rows of ${name}`, { err: error, store: name }, text);
    }
    return null;
  };
  const sweep = async () => {
    // Everything here uses the same database, so one line tells that it is away.
    const rests = isResting();
    let away = rests ? null : await expireLocks();
    for (const [name, store] of Object.entries(swept))
      if (!rests || store.restsAfterJump !== true) away = (await sweepStore(name, store)) ?? away;
    if (away !== null)
      outages.failed(
        'sweep',
        { err: away },
        'expired locks and old rows could not be removed, because the database does not answer; it is tried again',
      );
    running = null;
  };
  // A sweep can take longer than `everyMs`.
  const timer = setInterval(() => {
    running ??= sweep();
  }, everyMs);
  return {
    async close() {
      closed = true;
      clearInterval(timer);
      await running;
    },
  };
}
