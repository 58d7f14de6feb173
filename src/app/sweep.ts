import { expireAll, type Ledger } from '#billing';
import type { Logger } from '#observe';

/** A store whose rows expire. `sweep` removes at most `batch` of them and resolves with the number of removed rows. */
interface Swept {
  sweep(batch: number): Promise<number>;
}

interface SweeperOptions {
  readonly ledger: Ledger;
  readonly logger: Logger;
  readonly now: () => number;
}

const BATCH = 1_000;

/** Every `everyMs`, expires overdue locks and removes old rows. After a failure the next run tries again. */
export function openSweeper(
  { ledger, logger, now }: SweeperOptions,
  swept: readonly Swept[],
  everyMs: number,
): { close(): void } {
  const sweep = async () => {
    try {
      const expired = await expireAll(ledger, now());
      if (expired > 0) logger.warn({ locks: expired }, 'locks expired');
      for (const each of swept) for (let count = BATCH; count === BATCH;) count = await each.sweep(BATCH);
    } catch (error) {
      logger.warn({ err: error }, 'the sweep of expired locks failed; it is tried again');
    }
  };
  const timer = setInterval(() => void sweep(), everyMs);
  return { close: () => clearInterval(timer) };
}
