import { loadStatement, type Database } from '#store';
import { keyOf, toTaskRow, type TaskRow } from './task-rows.ts';

/** Tasks that are due for a look, shared out among the gateways of a database. */
export interface DueTasks {
  /**
   * Takes tasks that are due, those first that are so for longest: at most `limit`, of each offer at most
   * LOOKS_PER_OFFER, of the `busy` offers none. Nobody else takes them until they are released, or CLAIM_MS are
   * over.
   */
  claim(limit: number, busy: readonly string[]): Promise<readonly TaskRow[]>;
  /**
   * Gives claimed tasks back. The next look is at `nextLookAt`, after a pause of `lookMs`, where they did not
   * change meanwhile.
   */
  release(tasks: readonly Released[]): Promise<void>;
  /**
   * Makes claims void, and every open task due: for one who has the database to itself, and found what a process
   * left that died.
   */
  forgetClaims(): Promise<void>;
  /** Removes tasks that ended at `until` or before, at most `limit`; resolves with how many. */
  sweep(until: number, limit: number): Promise<number>;
  /** Forgets contexts that nobody has used since `until`. Resolves with how many. */
  sweepContexts(until: number, limit: number): Promise<number>;
}

export interface Released {
  readonly task: TaskRow;
  readonly nextLookAt: number;
  readonly lookMs: number;
}

/** Looks at once that are not slow. */
export const LOOKS_MAX = 16;
/** Looks at once of one offer, slow ones too. */
export const LOOKS_PER_OFFER = 4;
/** Longer than a look may take. */
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
        await database.query(CLAIM[database.engine], [at, at + CLAIM_MS, limit, LOOKS_PER_OFFER, JSON.stringify(busy)])
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
