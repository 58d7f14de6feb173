import { isOne, loadStatement, numberOrNull, rowReader, type Row, type Value } from '#store';
import type { Task, TaskKey, TaskOwner } from './task.ts';

/** A task as its row says, with what is for settling and looking alone. */
export interface TaskRow extends Task {
  /** How many calls were added so far. */
  readonly calls: number;
  /** null while it goes on. */
  readonly endedAt: number | null;
  /** See Ending; null while it goes on. */
  readonly ending: string | null;
  /** It goes on, or something of it is not settled yet. */
  readonly open: boolean;
  readonly nextLookAt: number;
  readonly lookMs: number;
  readonly claimedUntil: number;
}

/** Longest id of a task or a context, and word for a state. */
const TEXT_LENGTH_MAX = 256;

/** Whether a text that a stranger chose is one that both databases keep, letter by letter, and find again. */
export const isStorable = (text: string): boolean =>
  text.length >= 1 && text.length <= TEXT_LENGTH_MAX && !text.includes('\0') && text.isWellFormed();

export const FIND_TASK = loadStatement(import.meta.url, './sql/find-task.sql');

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

/** The task without what is nobody else's. */
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

/** The state as it can be kept. */
export const stateOf = (state: string): string => (isStorable(state) ? state : UNKNOWN_STATE);
/** The context as it can be kept; null where it cannot. */
export const contextOf = (contextId: string | null | undefined): string | null =>
  contextId && isStorable(contextId) ? contextId : null;

/**
 * An account sees all that is its own. A run sees only what was begun under the same call. A member's key sees what it
 * began itself: not what was begun under its calls, which is of their runs and of the account.
 */
export function sees(task: TaskOwner, { account, within }: TaskOwner): boolean {
  return task.account === account && (within === null || task.within === within);
}
