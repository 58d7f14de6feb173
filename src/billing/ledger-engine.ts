import { setTimeout as delay } from 'node:timers/promises';
import { DatabaseError } from '#store';
import { LedgerUnavailable, type AccountName } from './ledger.ts';
import type { AccountRow, BudgetRow } from './ledger-changes.ts';
import { createGroupCommit, rejectNew, rejectOverdue, type GroupCommit, type Pending } from './group-commit.ts';
import type { Operation, OperationResult } from './ledger-operations.ts';

/**
 * The part of a ledger that depends on the database. A group is begun once and attempted until it succeeds, so an
 * attempt can use the outcome of earlier attempts.
 */
export interface Engine {
  /** The hash chain of the journal that this writer appends to. */
  readonly chain: string;
  begin(): Attempt;
  /** The current row; null if there is no such row. Rejects with DatabaseError. */
  account(id: AccountName): Promise<AccountRow | null>;
  budget(id: string): Promise<BudgetRow | null>;
  /** True for errors caused by concurrent transactions. The same group may be attempted again at once. */
  isConflict(error: DatabaseError): boolean;
  close(): Promise<void>;
}

/**
 * Commits the operations in one transaction. After an error, either they have no effect, or the next attempt finds out
 * that they were committed.
 */
export type Attempt = (operations: readonly Operation[]) => Promise<readonly OperationResult[]>;

/**
 * How long each kind of operation is retried. Work was done for a settlement, so it must survive a restart of the
 * database. A new call should fail soon instead.
 */
const PATIENCE_MS: Readonly<Record<Operation['kind'], number>> = {
  lock: 5_000,
  transfer: 5_000,
  settle: 30_000,
  release: 30_000,
  keep: 30_000,
  expire: 5_000,
};
const GROUP_MAX = 1024;
const PAUSE_MIN_MS = 20;
const PAUSE_MAX_MS = 500;

/** One group that was committed or given up: the number of its operations, and the time until all had an answer. */
export interface LedgerBatch {
  /** The hash chain that the group was written to, if it had an effect. */
  readonly chain: string;
  readonly size: number;
  readonly durationMs: number;
}

/**
 * Group commit over an engine. Retries while the database is unavailable and after conflicts. If a group fails for
 * another reason, its operations are committed one by one, so one bad operation does not fail the others.
 */
export function createCommitter(engine: Engine, onBatch: ((batch: LedgerBatch) => void) | undefined): GroupCommit {
  const timed = async (group: readonly Pending[], groups: GroupCommit) => {
    const startedAt = performance.now();
    await commit(engine, group, groups);
    onBatch?.({ chain: engine.chain, size: group.length, durationMs: performance.now() - startedAt });
  };
  return createGroupCommit({
    commit: timed,
    patience: ({ kind, request }) => PATIENCE_MS[kind === 'lock' && request.workDone ? 'settle' : kind],
    groupMax: GROUP_MAX,
  });
}

async function commit(engine: Engine, group: readonly Pending[], groups: GroupCommit): Promise<void> {
  const attempt = engine.begin();
  let pauseMs = PAUSE_MIN_MS;
  for (let members = group; members.length > 0;) {
    try {
      const results = await attempt(members.map(({ operation }) => operation));
      members.forEach(({ resolve }, index) => resolve(results[index]!));
      return;
    } catch (error) {
      if (!(error instanceof DatabaseError)) return reject(members, error);
      if (error.code === 'closed')
        return reject(members, new LedgerUnavailable('The database is closed', { cause: error }));
      const again = error.unavailable || engine.isConflict(error);
      if (!again && members.length === 1) return reject(members, error);
      if (!again) {
        for (const member of members) await commit(engine, [member], groups);
        return;
      }
      if (error.full) {
        // The operator must free disk space, which takes longer than callers wait. So new calls are rejected at once,
        // and ends of calls are retried.
        const full = new LedgerUnavailable('The disk of the database is full', { cause: error });
        members = rejectNew(members, full);
        groups.rejectNew(full);
        if (members.length === 0) return;
      }
      if (error.unavailable) {
        await delay(pauseMs);
        pauseMs = Math.min(pauseMs * 2, PAUSE_MAX_MS);
      }
      members = rejectOverdue(members);
      groups.rejectOverdue();
    }
  }
}

function reject(members: readonly Pending[], error: unknown): void {
  for (const member of members) member.reject(error instanceof Error ? error : new Error(String(error)));
}
