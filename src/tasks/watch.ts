import type { Database } from '#store';
import type { Primitive } from '#config';
import type { KeptTasks } from './create-tasks.ts';
import { createDueTasks, LOOKS_MAX, LOOKS_PER_OFFER, SLOW_LOOKS_MAX, type Released } from './due-tasks.ts';
import { createSlowLooks } from './slow-looks.ts';
import { toTask, type TaskRow } from './task-rows.ts';
import type { Look, Sight, Task } from './task.ts';

export interface TaskWatchOptions {
  readonly database: Database;
  readonly tasks: KeptTasks;
  /**
   * How each protocol looks at its tasks. Those of a primitive without a look only end when others see it, or are
   * given up.
   */
  readonly looks: Readonly<Partial<Record<Primitive, Look>>>;
  /** False while the provider of a task is connected nowhere. */
  readonly present: (task: Task) => boolean;
  /** Id of the provider of a task. */
  readonly providerOf: (task: Task) => string;
  /** Epoch milliseconds. */
  readonly now: () => number;
  readonly random: () => number;
  /** The longest pause between two looks at a task. */
  readonly lookMsMax: number;
  /** How long a task is remembered after its end. */
  readonly retentionMs: number;
  /** Nobody else has the database: claims that are found in it are those of a process that died. */
  readonly alone: boolean;
  /** A task was given up: nobody saw its end in time. */
  readonly onGivenUp?: (task: Task) => void;
  /** Something failed, for the first time since something went well. It is tried again. */
  readonly onError: (error: unknown) => void;
  /** Time between two searches for what is due, where nothing else happens. */
  readonly tickMs?: number;
  /** A look that takes longer holds no place of the others. */
  readonly slowMs?: number;
}

export interface TaskWatch {
  /**
   * Ends the watch at once: looks that run are aborted, and what they see is not heard any more. Resolves when
   * nothing of it runs.
   */
  close(): Promise<void>;
}

/** Claimed tasks of one offer: how many are looked at, and those that wait for their turn. */
interface OfferLooks {
  active: number;
  readonly waiting: TaskRow[];
}

const TICK_MS = 500;
const SLOW_MS = 500;
/** A look that takes longer has seen nothing. */
const LOOK_MS = 10_000;
const PAUSE_GROWTH = 1.6;
/**
 * Of a pause, so much is left to chance, so that tasks that were begun together are not looked at together for ever.
 */
const JITTER = 0.2;
/** A provider that is away may be back any moment. */
const ABSENT_MS_MAX = 10_000;
const SWEEP_MS = 60_000;
const SWEEP_BATCH = 500;
/** What a provider remembers of a context nobody knows; longer than anybody goes on with one. */
const CONTEXT_MS = 365 * 24 * 3_600_000;

/**
 * Looks at the tasks that go on, so that their end is seen also where no client asks and no provider tells; gives
 * up those whose time is over; settles what a gateway that died left open; and forgets those that ended long ago.
 * Gateways that share a database share this work.
 */
export function createTaskWatch(options: TaskWatchOptions): TaskWatch {
  const { database, tasks, looks, present, now, random, lookMsMax, retentionMs, alone, onGivenUp, onError } = options;
  const { tickMs = TICK_MS, slowMs = SLOW_MS } = options;
  const due = createDueTasks(database, { now });
  const closing = new AbortController();
  const { signal: closed } = closing;
  const offers = new Map<string, OfferLooks>();
  const slowLooks = createSlowLooks(SLOW_LOOKS_MAX);
  const running = new Set<Promise<void>>();
  /** Places: of tasks that wait for their look, and of looks that do not take long. */
  let taken = 0;
  let released: Released[] = [];
  let failing = false;
  let wake = () => {};

  const failed = (error: unknown) => {
    if (!failing && !closed.aborted) onError(error);
    failing = true;
  };

  /** The pause after a look that saw no change. */
  const pauseAfter = (task: TaskRow, longest: number, least = 0) => {
    const lookMs = Math.min(Math.max(Math.ceil(task.lookMs * PAUSE_GROWTH), least), lookMsMax, longest);
    const at = now() + Math.max(least, Math.ceil(lookMs * (1 - JITTER * random())));
    return { task, lookMs, nextLookAt: task.live ? Math.min(at, Math.max(task.expiresAt, now())) : at };
  };

  /**
   * Resolves with the next pause; null where the task needs no look any more. `slow`: its look takes long.
   * `looked`: its provider is not asked any more.
   */
  const attend = async (task: TaskRow, slow: () => void, looked: () => void): Promise<Released | null> => {
    if (!task.live) {
      await tasks.settleRest(task);
      return null;
    }
    if (task.expiresAt <= now()) {
      const given = await tasks.giveUp(task);
      if (given) onGivenUp?.(given);
      return given ? null : pauseAfter(task, lookMsMax);
    }
    const plain = toTask(task);
    if (!present(plain)) return pauseAfter(task, ABSENT_MS_MAX);
    const look = looks[task.primitive];
    const sight = look ? await lookAt(look, plain, slow) : null;
    looked();
    if (closed.aborted) return asItWas(task);
    if (sight === null) return pauseAfter(task, lookMsMax);
    const seen = await tasks.saw(task, sight);
    return seen?.task.live ? pauseAfter(task, lookMsMax, Math.min(sight.pauseMs ?? 0, lookMsMax)) : null;
  };

  /** The look itself; null when it takes too long, fails, is ended for others, or the watch is closed. */
  const lookAt = async (look: Look, task: Task, slow: () => void): Promise<Sight | null> => {
    const over = new AbortController();
    const leave = () => over.abort();
    const slowLook = { provider: options.providerOf(task), end: leave };
    const slowTimer = setTimeout(() => {
      slow();
      slowLooks.add(slowLook);
    }, slowMs);
    const timer = setTimeout(leave, LOOK_MS);
    closed.addEventListener('abort', leave, { once: true });
    const given = new Promise<null>((resolve) => {
      over.signal.addEventListener('abort', () => resolve(null), { once: true });
    });
    try {
      return await Promise.race([look(task, over.signal), given]);
    } catch {
      return null;
    } finally {
      clearTimeout(slowTimer);
      clearTimeout(timer);
      slowLooks.delete(slowLook);
      closed.removeEventListener('abort', leave);
    }
  };

  const start = (task: TaskRow, offer: OfferLooks) => {
    offer.active += 1;
    let looking = true;
    const looked = () => {
      if (!looking) return;
      looking = false;
      offer.active -= 1;
      if (!closed.aborted) startNext(task.offerId, offer);
    };
    let placed = true;
    const leavePlace = () => {
      if (placed) taken -= 1;
      placed = false;
      wake();
    };
    const slow = () => {
      // Its other tasks would wait for as long, and hold places.
      const waiting = offer.waiting.splice(0);
      taken -= waiting.length;
      released.push(...waiting.map(asItWas));
      leavePlace();
    };
    const run = attended(task, slow, looked).then(leavePlace);
    running.add(run);
    void run.then(() => running.delete(run));
  };

  const attended = async (task: TaskRow, slow: () => void, looked: () => void) => {
    let next: Released | null;
    try {
      next = await attend(task, slow, looked);
    } catch (error) {
      failed(error);
      next = pauseAfter(task, lookMsMax);
    }
    looked();
    if (next) released.push(next);
  };

  const startNext = (id: string, offer: OfferLooks) => {
    while (offer.active < LOOKS_PER_OFFER) {
      const task = offer.waiting.shift();
      if (!task) break;
      // Somebody else may have it before this look is over.
      if (task.claimedUntil - now() > LOOK_MS) start(task, offer);
      else taken -= 1;
    }
    if (offer.active === 0) offers.delete(id);
  };

  const giveBack = async () => {
    const batch = released;
    released = [];
    await due.release(batch);
  };

  /**
   * Resolves with whether there may be more behind what was taken: where an offer has more that is due than it may
   * have at once.
   */
  const claim = async (): Promise<boolean> => {
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
      startNext(id, offer);
    }
    return [...byOffer.values()].some(({ length }) => length >= LOOKS_PER_OFFER);
  };

  let sweptAt = -Infinity;
  const sweep = async () => {
    if (Math.abs(now() - sweptAt) < SWEEP_MS) return;
    sweptAt = now();
    for (let swept = SWEEP_BATCH; swept === SWEEP_BATCH && !closed.aborted;)
      swept = await due.sweep(now() - retentionMs, SWEEP_BATCH);
    for (let swept = SWEEP_BATCH; swept === SWEEP_BATCH && !closed.aborted;)
      swept = await due.sweepContexts(now() - CONTEXT_MS, SWEEP_BATCH);
  };

  /** Resolves with whether the next is to come at once. */
  const turn = async (): Promise<boolean> => {
    await giveBack();
    const more = taken < LOOKS_MAX && !closed.aborted && (await claim());
    await sweep();
    failing = false;
    return more && taken < LOOKS_MAX;
  };

  const watch = async () => {
    if (alone) await due.forgetClaims().catch(failed);
    while (!closed.aborted) {
      const woken = new Promise<void>((resolve) => (wake = resolve));
      if (await turn().catch(failed)) continue;
      const timer = setTimeout(wake, closed.aborted ? 0 : tickMs);
      await woken;
      clearTimeout(timer);
    }
  };
  const watched = watch();

  return {
    async close() {
      closing.abort();
      wake();
      await watched;
      await Promise.all(running);
      // Others need not wait until the claims are over.
      for (const { waiting } of offers.values()) released.push(...waiting.map(asItWas));
      await giveBack().catch(() => {});
    },
  };
}

/** Due for somebody else. */
const asItWas = (task: TaskRow): Released => ({ task, lookMs: task.lookMs, nextLookAt: task.nextLookAt });
