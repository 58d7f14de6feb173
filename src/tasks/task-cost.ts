import type { Ledger, LockRecord, MicroUsd } from '#billing';
import type { Database } from '#store';
import { listCalls } from './settle-calls.ts';
import type { TaskKey } from './task.ts';

/** The charges of a task, one for each of its calls, in the order in which they were made. */
export interface TaskCost {
  readonly calls: readonly CallCost[];
}

export interface CallCost {
  readonly id: string;
  readonly charged: MicroUsd;
  /** With all calls under it; absent where it could have none. */
  readonly runCost?: MicroUsd;
  /** Signed; null for one that was not charged. */
  readonly receipt: string | null;
}

interface TaskCostOptions {
  readonly database: Pick<Database, 'query'>;
  readonly ledger: Pick<Ledger, 'find'>;
  readonly receipt: (record: LockRecord) => string | null;
}

/**
 * Reads what a task was charged. `began`: the call that began it, which is not among those that were left to it
 * where it ended at once. null while any is not settled.
 */
export async function readTaskCost(
  { database, ledger, receipt }: TaskCostOptions,
  key: TaskKey,
  began: string | null,
): Promise<TaskCost | null> {
  const later = (await listCalls(database, key)).map(({ callId }) => callId);
  const ids = [...new Set([...(began === null ? [] : [began]), ...later])];
  const calls: CallCost[] = [];
  for (const id of ids) {
    // oxlint-disable-next-line no-await-in-loop -- a task has few
    const record = await ledger.find(id);
    if (record === null) calls.push({ id, charged: 0n, receipt: null });
    else if (record.state === 'held') return null;
    else {
      const runCost = record.lendable > 0n ? { runCost: record.charged + record.lent } : {};
      calls.push({ id, charged: record.charged, ...runCost, receipt: receipt(record) });
    }
  }
  return { calls };
}
