import { type DueWorker, loadStatements, type Database } from '#store';
import { type TaskRow, keyOf, toTaskRow } from './task-rows.ts';
import type { TaskPoll, Observation, Task } from './task.ts';

interface PollSchedulerOptions {
  readonly due: DueTasks;
  /**
   * Polls a claimed task. Calls `onSlow` if the poll is slow, and `onLooked` when the provider is not queried any
   * more. Resolves with the next pause, or null if the task needs no further poll.
   */
  readonly attend: (task: TaskRow, onSlow: () => void, onLooked: () => void) => Promise<Released | null>;
  /** The next pause of a task after `attend` rejected. */
  readonly failed: (task: TaskRow) => Released;
  readonly now: () => number;
}

/** Running and waiting polls, per offer. Polls that are not slow share POLLS_MAX slots. */
interface PollScheduler {
  /**
   * Claims due tasks for the free slots and starts their polls. Resolves with true if more tasks may be due, because
   * one claim takes at most POLLS_PER_OFFER tasks of an offer.
   */
  claim(worker: DueWorker): Promise<boolean>;
  giveBack(): Promise<void>;
  /** Also releases the tasks that wait for their poll, so that other gateways can claim them at once. */
  giveBackAll(): Promise<void>;
}

interface Offer {
  active: number;
  readonly waiting: TaskRow[];
}

/** Releases a task without a change of its next poll. */
export const asItWas = (task: TaskRow): Released => ({ task, lookMs: task.lookMs, nextLookAt: task.nextLookAt });

export function createPollScheduler({ due, attend, failed, now }: PollSchedulerOptions): PollScheduler {
  const offers = new Map<string, Offer>();
  /** Slots in use, by tasks that wait for their poll and by polls that are not slow. */
  let slots = 0;
  let released: Released[] = [];

  const start = (worker: DueWorker, task: TaskRow, offer: Offer) => {
    offer.active += 1;
    let isLooking = true;
    const onLooked = () => {
      if (!isLooking) return;
      isLooking = false;
      offer.active -= 1;
      if (!worker.closed.aborted) startNext(worker, task.offerId, offer);
    };
    let hasPlace = true;
    const leavePlace = () => {
      if (hasPlace) slots -= 1;
      hasPlace = false;
      worker.wake();
    };
    const onSlow = () => {
      // The offer's other tasks would wait just as long and occupy slots, so they are released.
      const waiting = offer.waiting.splice(0);
      slots -= waiting.length;
      released.push(...waiting.map(asItWas));
      leavePlace();
    };
    const job = async () => {
      let next: Released | null = null;
      try {
        next = await attend(task, onSlow, onLooked);
      } catch (error) {
        next = failed(task);
        throw error;
      } finally {
        onLooked();
        if (next) released.push(next);
      }
    };
    worker.start(job, leavePlace);
  };

  const startNext = (worker: DueWorker, id: string, offer: Offer) => {
    while (offer.active < POLLS_PER_OFFER) {
      const task = offer.waiting.shift();
      if (!task) break;
      // If the claim ends before this poll could, another gateway may have the task. Then the task is skipped.
      if (task.claimedUntil - now() > POLL_MS) start(worker, task, offer);
      else slots -= 1;
    }
    if (offer.active === 0) offers.delete(id);
  };

  const giveBack = async () => {
    const batch = released;
    released = [];
    await due.release(batch);
  };

  return {
    async claim(worker) {
      if (slots >= POLLS_MAX || worker.closed.aborted) return false;
      const busy = [...offers]
        .filter(([, { active, waiting }]) => active + waiting.length >= POLLS_PER_OFFER)
        .map(([id]) => id);
      const claimed = await due.claim(POLLS_MAX - slots, busy);
      slots += claimed.length;
      const byOffer = Map.groupBy(claimed, ({ offerId }) => offerId);
      for (const [id, claims] of byOffer) {
        let offer = offers.get(id);
        if (!offer) offers.set(id, (offer = { active: 0, waiting: [] }));
        offer.waiting.push(...claims);
        startNext(worker, id, offer);
      }
      return slots < POLLS_MAX && [...byOffer.values()].some(({ length }) => length >= POLLS_PER_OFFER);
    },
    giveBack,
    async giveBackAll() {
      for (const { waiting } of offers.values()) released.push(...waiting.map(asItWas));
      await giveBack();
    },
  };
}

/** Tasks that are due for a poll. The gateways of a database share them. */
interface DueTasks {
  /**
   * Claims due tasks, the longest due first: at most `limit`, at most POLLS_PER_OFFER per offer, and none of the `busy`
   * offers. No other gateway can claim them until they are released or CLAIM_MS have passed.
   */
  claim(limit: number, busy: readonly string[]): Promise<readonly TaskRow[]>;
  /**
   * Releases claimed tasks. The next poll is at `nextLookAt`, after a pause of `lookMs`, unless the task has changed
   * meanwhile.
   */
  release(tasks: readonly Released[]): Promise<void>;
  /**
   * Cancels all claims and makes every open task due. For the start of a gateway that is the only user of its database:
   * the claims are those of a process that died.
   */
  forgetClaims(): Promise<void>;
  /** Removes tasks that ended at or before `until`, at most `limit`. Resolves with their number. */
  sweep(until: number, limit: number): Promise<number>;
  /** Removes contexts that were not used since `until`, at most `limit`. Resolves with their number. */
  sweepContexts(until: number, limit: number): Promise<number>;
}

export interface Released {
  readonly task: TaskRow;
  readonly nextLookAt: number;
  readonly lookMs: number;
}

/** The most concurrent polls that are not slow. */
const POLLS_MAX = 16;
/** The most concurrent polls of one offer, including slow ones. */
const POLLS_PER_OFFER = 4;
/** Must be longer than a poll may take. */
const CLAIM_MS = 15_000;

const SQL = loadStatements(import.meta.url, './sql/tasks.sql', [
  'releaseTask',
  'forgetClaims',
  'sweepTasks',
  'sweepContexts',
  'claimTasks',
  'pgClaimTasks',
]);
const CLAIM = {
  sqlite: SQL.claimTasks,
  postgres: SQL.pgClaimTasks,
} as const;

export function createDueTasks(database: Database, { now }: { readonly now: () => number }): DueTasks {
  return {
    async claim(limit, busy) {
      const at = now();
      return (
        await database.query(CLAIM[database.engine], [at, at + CLAIM_MS, limit, POLLS_PER_OFFER, JSON.stringify(busy)])
      ).map(toTaskRow);
    },
    async release(tasks) {
      if (tasks.length === 0) return;
      const steps = tasks.map(({ task, nextLookAt, lookMs }) => ({
        statement: SQL.releaseTask,
        params: [...keyOf(task), task.claimedUntil, task.nextLookAt, lookMs, nextLookAt],
      }));
      await database.batch(steps);
    },
    async forgetClaims() {
      await database.query(SQL.forgetClaims, [now()]);
    },
    sweep: async (until, limit) => (await database.query(SQL.sweepTasks, [until, limit])).length,
    sweepContexts: async (until, limit) => (await database.query(SQL.sweepContexts, [until, limit])).length,
  };
}

/** The most concurrent slow polls. */
const SLOW_POLLS_MAX = 64;
/** Timeout of a poll. */
export const POLL_MS = 10_000;

export interface TimedPollOptions {
  readonly providerOf: (task: Task) => string;
  /** Milliseconds after which a poll is slow. */
  readonly slowMs: number;
  /** Aborts all polls. */
  readonly closed: AbortSignal;
}

/**
 * Polls a task. Calls `onSlow` when the poll becomes slow. Resolves with null if the poll fails, takes longer than
 * POLL_MS, or is ended by `closed` or because too many polls are slow.
 */
type TimedPoll = (poll: TaskPoll, task: Task, onSlow: () => void) => Promise<Observation | null>;

export function createTimedPoll({ providerOf, slowMs, closed }: TimedPollOptions): TimedPoll {
  const slowPolls = createSlowPolls(SLOW_POLLS_MAX);
  return async (poll, task, onSlow) => {
    if (closed.aborted) return null;
    const over = new AbortController();
    const end = () => over.abort();
    const slowPoll = { provider: providerOf(task), end };
    const slowTimer = setTimeout(() => {
      onSlow();
      slowPolls.add(slowPoll);
    }, slowMs);
    const timer = setTimeout(end, POLL_MS);
    closed.addEventListener('abort', end, { once: true });
    const ended = new Promise<null>((resolve) => {
      over.signal.addEventListener('abort', () => resolve(null), { once: true });
    });
    try {
      return await Promise.race([poll(task, over.signal), ended]);
    } catch {
      return null;
    } finally {
      clearTimeout(slowTimer);
      clearTimeout(timer);
      slowPolls.delete(slowPoll);
      closed.removeEventListener('abort', end);
    }
  };
}

interface SlowPoll {
  readonly provider: string;
  readonly end: () => void;
}

/** Slow polls. They do not occupy the slots of other polls, but their number is limited. */
interface SlowPolls {
  /** If there are too many, ends the oldest poll of the provider with the most slow polls. */
  add(poll: SlowPoll): void;
  delete(poll: SlowPoll): void;
}

function createSlowPolls(max: number): SlowPolls {
  const polls = new Set<SlowPoll>();

  const oldestOfMost = (): SlowPoll | undefined => {
    const counts = new Map<string, number>();
    for (const { provider } of polls) counts.set(provider, (counts.get(provider) ?? 0) + 1);
    const most = Math.max(...counts.values());
    return polls.values().find(({ provider }) => counts.get(provider) === most);
  };

  return {
    add(poll) {
      polls.add(poll);
      if (polls.size <= max) return;
      const one = oldestOfMost()!;
      polls.delete(one);
      one.end();
    },
    delete: (poll) => void polls.delete(poll),
  };
}
