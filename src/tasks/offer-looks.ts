import type { DueWorker } from '#store';
import { LOOKS_MAX, LOOKS_PER_OFFER, type DueTasks, type Released } from './due-tasks.ts';
import type { TaskRow } from './task-rows.ts';
import { LOOK_MS } from './timed-look.ts';

interface OfferLooksOptions {
  readonly due: DueTasks;
  /**
   * Looks at a claimed task. `onSlow`: its look is slow. `onLooked`: its provider is not asked any more. Resolves
   * with its next pause, or null where it needs no look any more.
   */
  readonly attend: (task: TaskRow, onSlow: () => void, onLooked: () => void) => Promise<Released | null>;
  /** The next pause of a task after `attend` rejected. */
  readonly failed: (task: TaskRow) => Released;
  readonly now: () => number;
}

/** The looks that run and those that wait, of each offer. Looks that are not slow share LOOKS_MAX places. */
interface OfferLooks {
  /**
   * Claims due tasks for the free places and starts their looks. Resolves with whether more may be due: an offer
   * with many due tasks gets only LOOKS_PER_OFFER of them at once.
   */
  claim(worker: DueWorker): Promise<boolean>;
  /** Gives back the tasks whose looks are over. */
  giveBack(): Promise<void>;
  /** The same with the tasks that wait for their look, so that others need not wait until the claims are over. */
  giveBackAll(): Promise<void>;
}

interface Offer {
  active: number;
  readonly waiting: TaskRow[];
}

/** Due at the same time as before. */
export const asItWas = (task: TaskRow): Released => ({ task, lookMs: task.lookMs, nextLookAt: task.nextLookAt });

export function createOfferLooks({ due, attend, failed, now }: OfferLooksOptions): OfferLooks {
  const offers = new Map<string, Offer>();
  /** Places of tasks that wait for their look, and of looks that are not slow. */
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
      // Its other tasks would wait for as long, and hold places.
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
    while (offer.active < LOOKS_PER_OFFER) {
      const task = offer.waiting.shift();
      if (!task) break;
      // Somebody else may have it before this look is over.
      if (task.claimedUntil - now() > LOOK_MS) start(worker, task, offer);
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
      if (taken >= LOOKS_MAX || worker.closed.aborted) return false;
      const busy = [...offers]
        .filter(([, { active, waiting }]) => active + waiting.length >= LOOKS_PER_OFFER)
        .map(([id]) => id);
      const claimed = await due.claim(LOOKS_MAX - taken, busy);
      taken += claimed.length;
      const byOffer = Map.groupBy(claimed, ({ offerId }) => offerId);
      for (const [id, claims] of byOffer) {
        let offer = offers.get(id);
        if (!offer) offers.set(id, (offer = { active: 0, waiting: [] }));
        offer.waiting.push(...claims);
        startNext(worker, id, offer);
      }
      return taken < LOOKS_MAX && [...byOffer.values()].some(({ length }) => length >= LOOKS_PER_OFFER);
    },
    giveBack,
    async giveBackAll() {
      for (const { waiting } of offers.values()) released.push(...waiting.map(asItWas));
      await giveBack();
    },
  };
}
