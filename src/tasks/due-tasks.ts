import { loadStatement, type Database } from '#store';
import { keyOf, toTaskRow, type TaskRow } from './task-rows.ts';

/** Tasks that are due for a poll. The gateways of a database share them. */
export interface DueTasks {
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
export const POLLS_MAX = 16;
/** The most concurrent polls of one offer, including slow ones. */
export const POLLS_PER_OFFER = 4;
/** Must be longer than a poll may take. */
const CLAIM_MS = 15_000;

const CLAIM = {
  sqlite: loadStatement(import.meta.url, './sql/claim-tasks.sql'),
  postgres: loadStatement(import.meta.url, './sql/pg-claim-tasks.sql'),
} as const;
const RELEASE = loadStatement(import.meta.url, './sql/release-task.sql');
const FORGET = loadStatement(import.meta.url, './sql/forget-claims.sql');
const SWEEP = loadStatement(import.meta.url, './sql/sweep-tasks.sql');
const SWEEP_CONTEXTS = loadStatement(import.meta.url, './sql/sweep-contexts.sql');

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
        statement: RELEASE,
        params: [...keyOf(task), task.claimedUntil, task.nextLookAt, lookMs, nextLookAt],
      }));
      await database.batch(steps);
    },
    async forgetClaims() {
      await database.query(FORGET, [now()]);
    },
    sweep: async (until, limit) => (await database.query(SWEEP, [until, limit])).length,
    sweepContexts: async (until, limit) => (await database.query(SWEEP_CONTEXTS, [until, limit])).length,
  };
}
