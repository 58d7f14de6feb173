import { DatabaseError, type Database, type Row, type Step } from '#store';

export interface GroupWrites {
  /**
   * Resolves with the rows of each step once the steps are committed. Resolves with null if `isWanted` was false when
   * their turn came. Rejects with the database's error.
   */
  submit(steps: readonly Step[], isWanted?: () => boolean): Promise<readonly (readonly Row[])[] | null>;
}

interface GroupWritesOptions {
  readonly database: Pick<Database, 'batch'>;
  /** The first steps of every transaction. */
  readonly first: () => readonly Step[];
  /** Called after a commit with the rows of all steps, in order, before the promises of `submit` resolve. */
  readonly onCommitted: (rows: readonly Row[]) => void;
  /** Called when a transaction failed. It may still have been committed. */
  readonly onFailed: (error: Error) => void;
  readonly groupMax?: number;
}

interface PendingWrite {
  readonly steps: readonly Step[];
  readonly isWanted: () => boolean;
  readonly resolve: (rows: readonly (readonly Row[])[] | null) => void;
  readonly reject: (error: Error) => void;
}

/**
 * Collects writes while a transaction is being committed, and then commits them as one transaction, in their order. All
 * gateways wait for the lock of one row, so many connections at once must not cause as many transactions.
 */
export function createGroupWrites({
  database,
  first,
  onCommitted,
  onFailed,
  groupMax = 100,
}: GroupWritesOptions): GroupWrites {
  let waiting: PendingWrite[] = [];
  let running = false;

  const commit = async (group: readonly PendingWrite[]): Promise<void> => {
    const opening = first();
    const steps = group.flatMap((pending) => pending.steps);
    let rows: readonly (readonly Row[])[];
    try {
      rows = (await database.batch([...opening, ...steps])).slice(opening.length);
    } catch (cause) {
      const error = cause instanceof Error ? cause : new Error(String(cause));
      // If the database refused a statement, each submission is committed separately, so that only the faulty one
      // fails.
      const refused = error instanceof DatabaseError && !error.unavailable;
      if (refused && group.length > 1) {
        for (const pending of group) await commit([pending]);
        return;
      }
      onFailed(error);
      for (const { reject } of group) reject(error);
      return;
    }
    onCommitted(rows.flat());
    let at = 0;
    for (const pending of group) pending.resolve(rows.slice(at, (at += pending.steps.length)));
  };

  const run = async () => {
    while (waiting.length > 0) {
      const group = waiting.slice(0, groupMax);
      waiting = waiting.slice(groupMax);
      const { live = [], dead = [] } = Object.groupBy(group, (pending) => (pending.isWanted() ? 'live' : 'dead'));
      for (const { resolve } of dead) resolve(null);
      if (live.length > 0) await commit(live);
    }
    running = false;
  };

  return {
    submit: (steps, isWanted = () => true) =>
      new Promise((resolve, reject) => {
        waiting.push({ steps, isWanted, resolve, reject });
        if (running) return;
        running = true;
        // Writes of the same turn of the event loop go into one transaction.
        setImmediate(() => void run());
      }),
  };
}
