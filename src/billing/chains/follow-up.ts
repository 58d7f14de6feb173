import { createDueWorker, type DueWorker } from '#store';
import { ChainUnavailable, PayoutUnreadable, type OnProblem } from './chain.ts';

/** How many rows of one kind and one chain are handled at the same time. */
const AT_ONCE = 32;
const CLAIM_MS = 30_000;
const LOOK_MAX_MS = 15_000;
const OLD_POLL_MAX_MS = 3_600_000;

/**
 * Milliseconds until the next poll of a row after `polls` polls, `ageMs` after its last change. An old row waits a
 * twentieth of its age, because each look costs about a dozen requests to the node and the row may never end.
 */
export function followUpMs(polls: number, ageMs: number): number {
  return Math.min(500 * 1.5 ** Math.min(polls, 40), Math.max(LOOK_MAX_MS, ageMs / 20), OLD_POLL_MAX_MS);
}

interface DueRow {
  readonly id: string;
  readonly looks: number;
  readonly updatedAt: number;
}

interface FollowUpOptions<Row extends DueRow> {
  readonly network: string;
  readonly rows: {
    claim(network: string, limit: number, claimMs: number): Promise<readonly Row[]>;
    schedule(id: string, at: number): Promise<void>;
  };
  readonly carryOn: (row: Row) => Promise<void>;
  readonly pauseMs: number | null;
  readonly onProblem: OnProblem;
  readonly onError: (error: unknown, failures: number) => void;
  readonly now: () => number;
}

/** Handles the due rows of a network. A slow row uses one of the AT_ONCE places and delays no other row. */
export function createFollowUp<Row extends DueRow>(options: FollowUpOptions<Row>): DueWorker {
  const { network, rows, carryOn, pauseMs, onProblem, onError, now } = options;
  const underWay = new Set<string>();

  const poll = async (row: Row): Promise<void> => {
    try {
      await carryOn(row);
    } catch (error) {
      if (error instanceof PayoutUnreadable)
        onProblem('error', 'a signed withdrawal cannot be read, so it is neither paid nor given back', {
          id: row.id,
          error,
        });
      else if (!(error instanceof ChainUnavailable))
        onProblem('warn', 'the money on its way over a chain could not be processed; the gateway tries again', {
          id: row.id,
          error,
        });
    }
    // An unreachable database is reported by the next turn.
    await rows.schedule(row.id, now() + followUpMs(row.looks, now() - row.updatedAt)).catch(() => {});
  };

  return createDueWorker({
    async turn(worker) {
      if (underWay.size >= AT_ONCE) return;
      for (const row of await rows.claim(network, AT_ONCE - underWay.size, CLAIM_MS)) {
        // The last look at this row is still running after its claim expired.
        if (underWay.has(row.id)) continue;
        underWay.add(row.id);
        worker.start(
          () => poll(row),
          () => underWay.delete(row.id),
        );
      }
    },
    pauseMs,
    onError,
  });
}
