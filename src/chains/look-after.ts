import { ChainUnavailable } from './chain.ts';
import type { ProblemLevel } from './deposits.ts';

/** Looked at side by side: of one kind, on one chain. */
const AT_ONCE = 32;
const LOOK_MAX_MS = 15_000;
const OLD_LOOK_MAX_MS = 3_600_000;

/**
 * Milliseconds until the next look at what was looked at so often, and has not changed for `ageMs`. A twentieth of
 * that is soon enough for what is old: it costs the node a dozen questions each time, and nothing says that it ever
 * ends.
 */
export function lookAfterMs(looks: number, ageMs: number): number {
  return Math.min(500 * 1.5 ** Math.min(looks, 40), Math.max(LOOK_MAX_MS, ageMs / 20), OLD_LOOK_MAX_MS);
}

export interface LookAfterOptions<Row> {
  readonly claim: (limit: number) => Promise<readonly Row[]>;
  readonly carryOn: (row: Row) => Promise<void>;
  readonly schedule: (id: string, at: number) => Promise<void>;
  readonly onProblem: (level: ProblemLevel, problem: string, of: Readonly<Record<string, unknown>>) => void;
  readonly now: () => number;
}

export interface LookAfter {
  /** Begins to look at what is due, as far as there is room; resolves before that is done. */
  begin(): Promise<void>;
  /** Resolves when all that began is done. */
  done(): Promise<void>;
}

/** Looks after rows that are due: one that takes long takes one place, and holds up no other. */
export function createLookAfter<
  Row extends { readonly id: string; readonly looks: number; readonly updatedAt: number },
>(options: LookAfterOptions<Row>): LookAfter {
  const { claim, carryOn, schedule, onProblem, now } = options;
  const underWay = new Map<string, Promise<void>>();

  const look = async (row: Row): Promise<void> => {
    try {
      await carryOn(row);
    } catch (error) {
      if (!(error instanceof ChainUnavailable))
        onProblem('warn', 'money on its way over a chain could not be looked after; it is tried again', {
          id: row.id,
          error,
        });
    }
    await schedule(row.id, now() + lookAfterMs(row.looks, now() - row.updatedAt));
  };

  return {
    async begin() {
      if (underWay.size >= AT_ONCE) return;
      for (const row of await claim(AT_ONCE - underWay.size)) {
        // Its last look has outlasted the claim.
        if (underWay.has(row.id)) continue;
        // A database that is away is told of by the next claim.
        const looking = look(row).catch(() => {});
        underWay.set(row.id, looking);
        void looking.finally(() => underWay.delete(row.id));
      }
    },
    async done() {
      await Promise.all(underWay.values());
    },
  };
}
