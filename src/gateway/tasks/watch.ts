import { createDueWorker, type Database } from '#store';
import type { Primitive } from '#config';
import type { KeptTasks } from './create-tasks.ts';
import {
  createDueTasks,
  type Released,
  asItWas,
  createPollScheduler,
  createTimedPoll,
  type TimedPollOptions,
} from './poll-scheduler.ts';
import { toTask, type TaskRow } from './task-rows.ts';
import type { TaskPoll, PollAtExpiry, Task } from './task.ts';

export interface TaskWatchOptions extends Pick<TimedPollOptions, 'providerOf'> {
  readonly database: Database;
  readonly tasks: KeptTasks;
  /**
   * The poll of each protocol. Tasks of a primitive without a poll end only by replies or notifications, or are given
   * up.
   */
  readonly polls: Readonly<Partial<Record<Primitive, TaskPoll>>>;
  /** Tasks of other primitives are given up when their time is over. */
  readonly pollsAtExpiry: Readonly<Partial<Record<Primitive, PollAtExpiry>>>;
  /** False while the provider of a task is not connected to any gateway. */
  readonly present: (task: Task) => boolean;
  /** Epoch milliseconds. */
  readonly now: () => number;
  readonly random: () => number;
  /** The longest pause between two polls of a task. */
  readonly lookMsMax: number;
  /** How long a task is stored after its end, in milliseconds. */
  readonly retentionMs: number;
  /** This process is the only user of the database, so existing claims are those of a process that died. */
  readonly alone: boolean;
  /** Called when a task was given up, because no end was seen in time. */
  readonly onGivenUp?: (task: Task) => void;
  /** Called at the first failure after a success. The work is tried again. */
  readonly onError: (error: unknown) => void;
  /** Milliseconds between two searches for due tasks. */
  readonly tickMs?: number;
  /** Milliseconds after which a poll is slow and gives its slot to other polls. */
  readonly slowMs?: number;
}

export interface TaskWatch {
  /**
   * Ends the watch at once. Running polls are aborted and their results are ignored. Resolves when all work has ended.
   */
  close(): Promise<void>;
}

const TICK_MS = 500;
const SLOW_MS = 500;
const PAUSE_GROWTH = 1.6;
/** The random part of a pause, so that tasks that began together are not always polled together. */
const JITTER = 0.2;
/** The longest pause while a provider is away, because it may be back at any moment. */
const ABSENT_MS_MAX = 10_000;
const SWEEP_MS = 60_000;
const SWEEP_BATCH = 500;
/** How long the owner of a context is stored. It is longer than any context is used. */
const CONTEXT_MS = 365 * 24 * 3_600_000;

/**
 * Polls the running tasks, so that their end is seen even if no client asks and no provider notifies. It also gives up
 * expired tasks, settles calls that a crashed gateway left open, keeps the locks of running tasks, and removes tasks
 * that ended long ago. Gateways of one database share this work.
 */
export function createTaskWatch(options: TaskWatchOptions): TaskWatch {
  const { database, tasks, polls, present, now, random, lookMsMax, retentionMs, onError } = options;
  const { tickMs = TICK_MS, slowMs = SLOW_MS } = options;
  const due = createDueTasks(database, { now });

  /** The next pause after a poll that saw no change. One poll falls into the last part of a task's time. */
  const pauseAfter = (task: TaskRow, longest: number, least = 0): Released => {
    const lookMs = Math.min(Math.max(Math.ceil(task.lookMs * PAUSE_GROWTH), least), lookMsMax, longest);
    const at = now() + Math.max(least, Math.ceil(lookMs * (1 - JITTER * random())));
    const lastPart = lastPartOf(task);
    const latest = now() < lastPart ? lastPart : Math.max(task.expiresAt, now());
    return { task, lookMs, nextLookAt: task.live ? Math.min(at, latest) : at };
  };

  /** True if the task ended with the output that is here. */
  const endedByExpiry = async (task: TaskRow): Promise<boolean> => {
    const observation = await options.pollsAtExpiry[task.primitive]?.(toTask(task));
    return observation ? (await tasks.saw(task, observation)) !== null : false;
  };

  const attend = async (task: TaskRow, onSlow: () => void, onLooked: () => void): Promise<Released | null> => {
    if (!task.live) {
      await tasks.settleRest(task);
      return null;
    }
    if (task.expiresAt <= now()) {
      if (await endedByExpiry(task)) return null;
      const abandoned = await tasks.giveUp(task);
      if (abandoned) options.onGivenUp?.(abandoned);
      return abandoned ? null : pauseAfter(task, lookMsMax);
    }
    const plain = toTask(task);
    if (!present(plain)) return pauseAfter(task, ABSENT_MS_MAX);
    const poll = polls[task.primitive];
    const observation = poll ? await timedPoll(poll, plain, onSlow) : null;
    onLooked();
    if (closed.aborted) return asItWas(task);
    if (observation === null) return pauseAfter(task, lookMsMax);
    const seen = await tasks.saw(task, observation);
    return seen?.task.live ? pauseAfter(task, lookMsMax, Math.min(observation.pauseMs ?? 0, lookMsMax)) : null;
  };

  let sweptAt = -Infinity;
  /** Resolves with true if there is more to sweep. */
  const sweep = async (): Promise<boolean> => {
    const at = now();
    if (Math.abs(at - sweptAt) < SWEEP_MS) return false;
    const gone = await due.sweep(at - retentionMs, SWEEP_BATCH);
    const contexts = await due.sweepContexts(at - CONTEXT_MS, SWEEP_BATCH);
    const prolonged = await tasks.keepShort(SWEEP_BATCH);
    if ([gone, contexts, prolonged].includes(SWEEP_BATCH)) return true;
    sweptAt = at;
    return false;
  };

  const offers = createPollScheduler({ due, attend, failed: (task) => pauseAfter(task, lookMsMax), now });
  let claimsForgotten = !options.alone;
  const worker = createDueWorker({
    async turn(self) {
      if (!claimsForgotten) await due.forgetClaims();
      claimsForgotten = true;
      await offers.giveBack();
      const more = await offers.claim(self);
      return (await sweep()) || more;
    },
    pauseMs: tickMs,
    onError: (error, failures) => {
      if (failures === 1) onError(error);
    },
  });
  const { closed } = worker;
  const timedPoll = createTimedPoll({ providerOf: options.providerOf, slowMs, closed });
  worker.wake();

  return {
    async close() {
      await worker.close();
      await offers.giveBackAll().catch(() => {});
    },
  };
}

const LAST_MS_MAX = 60_000;
/** A short task has a shorter last part, because otherwise its last part could begin with the task. */
const SHARE = 8;

/**
 * When the last part of a task's time begins, in epoch milliseconds. The watch polls a task in it, however long the
 * pauses between its polls are.
 */
const lastPartOf = ({ createdAt, expiresAt }: Pick<Task, 'createdAt' | 'expiresAt'>): number =>
  expiresAt - Math.min(LAST_MS_MAX, Math.floor((expiresAt - createdAt) / SHARE));
