import type { Ledger, LockRecord, MicroUsd } from '#billing';
import type { Database } from '#store';
import { listCalls } from './settle-calls.ts';
import type { TaskKey } from './task.ts';

/** The charges of a task, one per call, in the order of the calls. */
export interface TaskCost {
  readonly calls: readonly CallCost[];
}

export interface CallCost {
  readonly id: string;
  readonly charged: MicroUsd;
  /** The charge with all calls under it; absent if no call could be made under it. */
  readonly runCost?: MicroUsd;
  /** The signed receipt; null for a call without one. */
  readonly receipt: string | null;
}

interface TaskCostOptions {
  readonly database: Pick<Database, 'query'>;
  readonly ledger: Pick<Ledger, 'find'>;
  readonly receipt: (record: LockRecord) => string | null;
}

/**
 * Reads the charges of a task. `began` is the call that began it. If the task ended at once, this call is not among the
 * stored calls of the task. Resolves with null while a call is not settled.
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
