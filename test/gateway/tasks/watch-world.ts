import { onTestFinished } from 'vitest';
import type { TaskPoll, Observation, Task } from '../../../src/gateway/tasks/task.ts';
import { createTaskWatch, type TaskWatch, type TaskWatchOptions } from '../../../src/gateway/tasks/watch.ts';
import type { Gateway } from './tasks-world.ts';

export const RETENTION_MS = 7 * 24 * 3_600_000;

/** What takes longer hangs: the clock of a watch stands still, so that nothing else comes of waiting. */
export const HANGS_MS = 60_000;

export interface WatchedLooks {
  /** What was looked at, in this order. */
  readonly looked: string[];
  /** Looks that run now, and the most that ever did: of all tasks, of the tasks of one offer, and of one task. */
  readonly now: number;
  readonly most: { all: number; offer: number; task: number };
  readonly poll: TaskPoll;
  /** Resolves with the next look that is made, once `count` were. */
  reached(count: number): Promise<void>;
}

/** Looks that are counted, over all the watches that are given them. */
export function countPolls(
  see: (task: Task, signal: AbortSignal) => Promise<Observation | null> | Observation | null,
): WatchedLooks {
  const looked: string[] = [];
  const running = new Map<string, number>();
  const most = { all: 0, offer: 0, task: 0 };
  const waiting: { readonly count: number; readonly resolve: () => void }[] = [];
  let now = 0;
  const add = (key: string, by: number): number => {
    const sum = (running.get(key) ?? 0) + by;
    running.set(key, sum);
    return sum;
  };
  return {
    looked,
    most,
    get now() {
      return now;
    },
    async poll(task, signal) {
      now += 1;
      most.all = Math.max(most.all, now);
      most.offer = Math.max(most.offer, add(`offer ${task.offerId}`, 1));
      most.task = Math.max(most.task, add(`task ${task.taskId}`, 1));
      looked.push(task.taskId);
      for (const { count, resolve } of waiting) if (looked.length >= count) resolve();
      try {
        return await see(task, signal);
      } finally {
        now -= 1;
        add(`offer ${task.offerId}`, -1);
        add(`task ${task.taskId}`, -1);
      }
    },
    reached: (count) =>
      new Promise((resolve) => {
        if (looked.length >= count) resolve();
        else waiting.push({ count, resolve });
      }),
  };
}

/** A watch of a gateway, closed with the test. Errors fail the test. */
export function startWatch(
  gateway: Gateway,
  clock: { now: number },
  poll: TaskPoll,
  changes: Partial<TaskWatchOptions> = {},
): TaskWatch {
  const errors: unknown[] = [];
  const watch = createTaskWatch({
    database: gateway.database,
    tasks: gateway.tasks,
    polls: { agent: poll },
    pollsAtExpiry: {},
    present: () => true,
    providerOf: ({ offerId }) => offerId,
    now: () => clock.now,
    random: () => 0,
    lookMsMax: 60_000,
    retentionMs: RETENTION_MS,
    alone: false,
    onGivenUp: () => {},
    onError: (error) => errors.push(error),
    tickMs: 5,
    ...changes,
  });
  onTestFinished(async () => {
    await watch.close();
    if (errors.length > 0) throw new AggregateError(errors, 'the watch failed');
  });
  return watch;
}
