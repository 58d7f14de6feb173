import { loadStatement, type Database } from '#store';
import type { SettlePendingCall, Ledger, LockRecord } from '#billing';
import { createTaskStart, type TaskStart } from './begin-task.ts';
import { createTaskEnd, type TaskEnd } from './end-task.ts';
import { createTaskSearch } from './find-tasks.ts';
import { readTaskCost } from './task-cost.ts';
import type { TaskContext } from './task-context.ts';
import { FIND_TASK, isStorable, keyOf, toTask, toTaskRow } from './task-rows.ts';
import type { TaskSink } from './task-sink.ts';
import type { Tasks } from './task.ts';

export interface TasksOptions {
  readonly database: Database;
  readonly ledger: Pick<Ledger, 'keep' | 'find'>;
  readonly settlePendingCall: SettlePendingCall;
  /** Epoch milliseconds. */
  readonly now: () => number;
  /** Called when this gateway has settled a pending call; see TaskSink. */
  readonly onConcluded: NonNullable<TaskSink['concluded']>;
  /** The most running tasks of one account; default no limit. */
  readonly liveMax?: number;
  readonly onBegun?: TaskSink['begun'];
  readonly onEnded?: TaskSink['ended'];
  readonly tellGivenUp?: TaskSink['tellGivenUp'];
  /** The signed receipt of a settled call; default none. */
  readonly receipt?: (record: LockRecord) => string | null;
  /** The name of an offer's provider; null if the offer does not exist any more. */
  readonly providerName?: (offerId: string) => string | null;
}

/** Tasks, with additional methods for the watch; see createTaskWatch. */
export interface KeptTasks extends Tasks, TaskEnd, TaskStart {}

const COUNT_LIVE = loadStatement(import.meta.url, './sql/count-live-tasks.sql');

/** The number of running tasks of all gateways on a database. */
export async function countLiveTasks(database: Database): Promise<number> {
  const [row] = await database.query(COUNT_LIVE);
  return Number(row!['tasks']);
}

export function createTasks(options: TasksOptions): KeptTasks {
  const { database, ledger, settlePendingCall, now, liveMax = Number.MAX_SAFE_INTEGER } = options;
  const { onBegun: begun, onEnded: ended, onConcluded: concluded, tellGivenUp, providerName } = options;
  const context: TaskContext = {
    database,
    ledger,
    settlePendingCall,
    nameOf: ({ offerId, provider }) => providerName?.(offerId) ?? provider,
    sink: {
      concluded,
      ...(begun ? { begun } : {}),
      ...(ended ? { ended } : {}),
      ...(tellGivenUp ? { tellGivenUp } : {}),
    },
    async read(key) {
      if (!isStorable(key.taskId) || !isStorable(key.service)) return null;
      const [row] = await database.query(FIND_TASK, keyOf(key));
      return row ? toTaskRow(row) : null;
    },
    now,
  };
  return {
    ...createTaskStart(context, liveMax),
    ...createTaskSearch(context),
    ...createTaskEnd(context),
    async costOf(key, beganBy) {
      const row = await context.read(key);
      return (
        row && readTaskCost({ database, ledger, receipt: options.receipt ?? (() => null) }, key, beganBy(toTask(row)))
      );
    },
  };
}
