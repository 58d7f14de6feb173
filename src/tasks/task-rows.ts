import { loadStatement, type Row, type Value } from '#store';
import type { Primitive } from '#config';
import type { Task, TaskKey } from './task.ts';

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

export function toTaskRow(row: Row): TaskRow {
  const text = (name: string) => row[name] as string;
  const number = (name: string) => Number(row[name]);
  const orNull = (name: string) => row[name] as string | null;
  return {
    primitive: text('primitive') as Primitive,
    service: text('service'),
    taskId: text('task_id'),
    account: text('account'),
    run: orNull('run'),
    offerId: text('offer_id'),
    provider: text('provider'),
    contextId: orNull('context_id'),
    state: text('state'),
    live: row['ended_at'] === null,
    output: row['gave_output'] === 1n,
    notes: text('notes'),
    snapshot: orNull('snapshot'),
    createdAt: number('created_at'),
    askedAt: row['asked_at'] === null ? number('created_at') : number('asked_at'),
    sentBytes: number('sent_bytes'),
    updatedAt: number('updated_at'),
    expiresAt: number('expires_at'),
    calls: number('calls'),
    endedAt: row['ended_at'] === null ? null : number('ended_at'),
    ending: orNull('ending'),
    open: row['open'] === 1n,
    nextLookAt: number('next_look_at'),
    lookMs: number('look_ms'),
    claimedUntil: number('claimed_until'),
  };
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
