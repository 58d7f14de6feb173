import type { Task } from './task.ts';

const LAST_MS_MAX = 60_000;
/** A short task has a shorter last part, because otherwise its last part could begin with the task. */
const SHARE = 8;

/**
 * When the last part of a task's time begins, in epoch milliseconds. The watch polls a task in it, however long the
 * pauses between its polls are.
 */
export const lastPartOf = ({ createdAt, expiresAt }: Pick<Task, 'createdAt' | 'expiresAt'>): number =>
  expiresAt - Math.min(LAST_MS_MAX, Math.floor((expiresAt - createdAt) / SHARE));
