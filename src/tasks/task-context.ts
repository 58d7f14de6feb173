import type { Database } from '#store';
import type { SettlePendingCall, Ledger } from '#billing';
import type { TaskRow } from './task-rows.ts';
import type { TaskSink } from './task-sink.ts';
import type { TaskKey } from './task.ts';

/** Dependencies that all parts of the tasks share. */
export interface TaskContext {
  readonly database: Database;
  readonly ledger: Pick<Ledger, 'keep' | 'find'>;
  readonly settlePendingCall: SettlePendingCall;
  /** The display name of a task's provider. */
  readonly nameOf: (task: TaskRow) => string;
  readonly sink: TaskSink;
  /** null if no task has the key. */
  readonly read: (key: TaskKey) => Promise<TaskRow | null>;
  /** Epoch milliseconds. */
  readonly now: () => number;
}
