import { expireAll, type Ledger } from '#billing';
import type { Logger } from '#observe';

/** Rows that age: `sweep` removes at most `batch` of them and resolves with how many those were. */
interface Swept {
  sweep(batch: number): Promise<number>;
}

interface SweeperOptions {
  readonly ledger: Ledger;
  readonly logger: Logger;
  readonly now: () => number;
}

const BATCH = 1_000;

/**
 * Expires locks that are past their time, and removes rows that have aged, every `everyMs`. What fails is tried
 * again the next time.
 */
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
