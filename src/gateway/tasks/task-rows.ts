import { isOne, loadStatements, numberOrNull, rowReader, type Row, type Value, type Database } from '#store';
import type { SettlePendingCall, Ledger, Settlement } from '#billing';
import type { Task, TaskCall, TaskKey, TaskOwner, TaskSink } from './task.ts';

/** A task with all columns of its row, including those for settling and looking. */
export interface TaskRow extends Task {
  /** The number of calls added so far. */
  readonly calls: number;
  /** null while the task runs. */
  readonly endedAt: number | null;
  /** A TaskEnding as text; null while the task runs. */
  readonly ending: string | null;
  /** True while the task runs, or while a call of it is not settled. */
  readonly open: boolean;
  readonly nextLookAt: number;
  readonly lookMs: number;
  readonly claimedUntil: number;
}

/** The most characters of a task id, a context id and a state. */
const TEXT_LENGTH_MAX = 256;

/** True if both databases can store an untrusted text unchanged and find it again. */
export const isStorable = (text: string): boolean =>
  text.length >= 1 && text.length <= TEXT_LENGTH_MAX && !text.includes('\0') && text.isWellFormed();

const SQL = loadStatements(import.meta.url, './sql/tasks.sql', ['listCalls', 'findTask']);
export const FIND_TASK = SQL.findTask;

/** The first three parameters of every statement about one task. */
export const keyOf = ({ primitive, taskId, service }: TaskKey): readonly Value[] => [primitive, taskId, service];

const read = rowReader<Omit<TaskRow, 'live'>>(
  {
    output: isOne,
    createdAt: Number,
    askedAt: Number,
    sentBytes: Number,
    updatedAt: Number,
    expiresAt: Number,
    calls: Number,
    endedAt: numberOrNull,
    open: isOne,
    nextLookAt: Number,
    lookMs: Number,
    claimedUntil: Number,
  },
  { gave_output: 'output', run: 'within' },
);

export function toTaskRow(row: Row): TaskRow {
  const task = read(row);
  return { ...task, live: task.endedAt === null, askedAt: row['asked_at'] === null ? task.createdAt : task.askedAt };
}

/** The task without the columns that only this module uses. */
export function toTask({
  calls: _calls,
  endedAt: _at,
  ending: _ending,
  open: _open,
  nextLookAt: _next,
  lookMs: _ms,
  claimedUntil: _until,
  ...task
}: TaskRow): Task {
  return task;
}

const UNKNOWN_STATE = 'unknown';

/** The state, or `unknown` if it cannot be stored. */
export const stateOf = (state: string): string => (isStorable(state) ? state : UNKNOWN_STATE);
/** The context id; null if it cannot be stored. */
export const contextOf = (contextId: string | null | undefined): string | null =>
  contextId && isStorable(contextId) ? contextId : null;

/**
 * An account sees all its tasks. A run sees only tasks that were begun under the same call. A restricted key sees only
 * tasks that it began itself. Tasks that were begun under its calls belong to the runs of these calls, and to the
 * account.
 */
export function sees(task: TaskOwner, { account, within }: TaskOwner): boolean {
  return task.account === account && (within === null || task.within === within);
}

export interface TaskContext {
  readonly database: Database;
  readonly ledger: Pick<Ledger, 'keep' | 'find'>;
  readonly settlePendingCall: SettlePendingCall;
  readonly nameOf: (task: TaskRow) => string;
  readonly sink: Required<TaskSink>;
  /** null if no task has the key. */
  readonly read: (key: TaskKey) => Promise<TaskRow | null>;
  /** Epoch milliseconds. */
  readonly now: () => number;
}

/** A call of a task, as it is stored. */
export interface CallRow extends TaskCall {
  readonly createdAt: number;
  readonly keptUntil: number;
  /** null until the call is settled. */
  readonly settlement: Settlement | null;
}

/** All calls of a task, in the order in which they were added. */
export async function listCalls(database: Pick<Database, 'query'>, key: TaskKey): Promise<readonly CallRow[]> {
  return (await database.query(SQL.listCalls, keyOf(key))).map(toCallRow);
}

const toCallRow = rowReader<CallRow>({
  createdAt: Number,
  keptUntil: Number,
  settlement: (text) => (text === null ? null : settlementFromText(text as string)),
});

/** A settlement as a JSON array of decimal texts in micro-USD. */
export function settlementToText({ charged, fee, drawn, shortfall }: Settlement): string {
  return JSON.stringify([charged, fee, drawn, shortfall].map(String));
}

function settlementFromText(text: string): Settlement {
  const [charged, fee, drawn, shortfall] = (JSON.parse(text) as readonly string[]).map(BigInt);
  return { charged: charged!, fee: fee!, drawn: drawn!, shortfall: shortfall! };
}
