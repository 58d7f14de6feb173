import type { DueWorker } from '#store';
import { POLLS_MAX, POLLS_PER_OFFER, type DueTasks, type Released } from './due-tasks.ts';
import type { TaskRow } from './task-rows.ts';
import { POLL_MS } from './timed-poll.ts';

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
  /** Releases the tasks whose polls are over. */
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
  let taken = 0;
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
      if (hasPlace) taken -= 1;
      hasPlace = false;
      worker.wake();
    };
    const onSlow = () => {
      // The offer's other tasks would wait just as long and occupy slots, so they are released.
      const waiting = offer.waiting.splice(0);
      taken -= waiting.length;
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
      else taken -= 1;
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
      if (taken >= POLLS_MAX || worker.closed.aborted) return false;
      const busy = [...offers]
        .filter(([, { active, waiting }]) => active + waiting.length >= POLLS_PER_OFFER)
        .map(([id]) => id);
      const claimed = await due.claim(POLLS_MAX - taken, busy);
      taken += claimed.length;
      const byOffer = Map.groupBy(claimed, ({ offerId }) => offerId);
      for (const [id, claims] of byOffer) {
        let offer = offers.get(id);
        if (!offer) offers.set(id, (offer = { active: 0, waiting: [] }));
        offer.waiting.push(...claims);
        startNext(worker, id, offer);
      }
      return taken < POLLS_MAX && [...byOffer.values()].some(({ length }) => length >= POLLS_PER_OFFER);
    },
    giveBack,
    async giveBackAll() {
      for (const { waiting } of offers.values()) released.push(...waiting.map(asItWas));
      await giveBack();
    },
  };
}
