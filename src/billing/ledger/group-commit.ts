import { setTimeout as delay } from 'node:timers/promises';
import { BUSY, DatabaseError } from '#store';
import { LedgerUnavailable, type AccountName } from './ledger.ts';
import type { LedgerOperation, OperationResult } from './ledger-operations.ts';
import type { AccountRow, BudgetRow } from './ledger-changes.ts';

/** An operation that waits until its group is durable. */
export interface PendingOperation {
  readonly operation: LedgerOperation;
  /** Milliseconds on the monotonic clock. After this time the operation is not tried again. */
  readonly deadline: number;
  readonly resolve: (result: OperationResult) => void;
  readonly reject: (error: Error) => void;
}

export interface GroupCommit {
  submit(operation: LedgerOperation): Promise<OperationResult>;
  /** Rejects queued operations that are past their deadline. For a committer that cannot commit because of `cause`. */
  rejectOverdue(cause: DatabaseError): void;
  /** Rejects queued operations that begin something, see rejectNew. For a committer that cannot write. */
  rejectNew(error: LedgerUnavailable): void;
  /** Refuses new operations, and resolves when the queue is empty and no group is running. */
  close(): Promise<void>;
}

interface GroupCommitOptions {
  /** Commits one group and resolves or rejects each of its members. Must not throw. */
  readonly commit: (group: readonly PendingOperation[], groups: GroupCommit) => Promise<void>;
  /** How long an operation is retried, in milliseconds. */
  readonly patience: (operation: LedgerOperation) => number;
  readonly groupMax: number;
  /** Default WAITING_MAX. */
  readonly waitingMax?: number;
}

/**
 * An operation waits so much longer while the database answers and other gateways use the same rows, because its turn
 * comes, and a client that gets an error begins anew at the end of the queue.
 */
const CONTENTION_MS = 10_000;
/** Operations that wait for the database. More are refused at once, except those that end a call. */
export const WAITING_MAX = 10_000;

/** If a group was larger than this, the load is taken to be high. */
export const FEW = 2;

/** Rejects the members that are past their deadline and returns the others. */
function rejectOverdue(members: readonly PendingOperation[], cause: DatabaseError): PendingOperation[] {
  const now = performance.now();
  const more = cause.unavailable ? 0 : CONTENTION_MS;
  const problem = cause.unavailable ? 'The database could not be reached' : 'Others were first at the same rows';
  return members.filter(({ operation: { kind, request }, deadline, reject }) => {
    if (deadline + more > now) return true;
    reject(new LedgerUnavailable(`${problem} in time to ${kind} ${request.id}`, { cause }));
    return false;
  });
}

/** Operations that end a call. They are not given up early, because work was done or money is held for the call. */
const ENDS: ReadonlySet<LedgerOperation['kind']> = new Set(['settle', 'release', 'keep']);

export const isEnd = ({ kind, request }: LedgerOperation): boolean =>
  ENDS.has(kind) || (kind === 'lock' && request.workDone === true);

/**
 * A lock that is released if its process ends, with the call that it is for. It may be on the disk later than its
 * caller is told, because after a crash it makes no difference whether it was.
 */
export const mayBeLate = ({ kind, request }: LedgerOperation): boolean => kind === 'lock' && request.workDone !== true;

/** In a ledger that flushes late, a crash may undo it although it was answered: see SettleRequest.mayBeLate. */
export const isLateEnd = ({ kind, request }: LedgerOperation): boolean =>
  (kind === 'settle' || kind === 'release' || kind === 'lock') && request.mayBeLate === true;

/** Rejects the members that do not end a call and returns the others. */
function rejectNew(members: readonly PendingOperation[], error: LedgerUnavailable): PendingOperation[] {
  return members.filter(({ operation, reject }) => {
    if (isEnd(operation)) return true;
    reject(error);
    return false;
  });
}

/**
 * Collects operations while the previous group is being committed, and commits them as one group. There is no timer. An
 * idle ledger commits all operations of the current turn of the event loop. A busy ledger commits all operations that
 * arrived during the last commit. Under high load the next group waits for one more turn, because a larger group costs
 * less per operation.
 */
export function createGroupCommit({ waitingMax = WAITING_MAX, ...options }: GroupCommitOptions): GroupCommit {
  let waiting: PendingOperation[] = [];
  let running = false;
  /** Number of members of the previous group. */
  let before = 0;
  let closed = false;
  const onIdle: (() => void)[] = [];

  const next = () => {
    if (waiting.length === 0) {
      running = false;
      before = 0;
      for (const idle of onIdle) idle();
      return;
    }
    const group = waiting.length <= options.groupMax ? waiting : waiting.slice(0, options.groupMax);
    waiting = waiting.length <= options.groupMax ? [] : waiting.slice(options.groupMax);
    before = group.length;
    void options.commit(group, groups).then(later);
  };
  // Runs after the callbacks of this turn, so that operations of callers that were just answered join the next group.
  const later = () => void setImmediate(before > FEW ? () => void setImmediate(next) : next);

  const groups: GroupCommit = {
    submit: (operation) =>
      new Promise((resolve, reject) => {
        if (closed) return reject(new LedgerUnavailable('The ledger is closed'));
        if (waiting.length >= waitingMax && !isEnd(operation)) return reject(tooMany());
        waiting.push({ operation, deadline: performance.now() + options.patience(operation), resolve, reject });
        if (running) return;
        running = true;
        later();
      }),
    rejectOverdue(cause) {
      waiting = rejectOverdue(waiting, cause);
    },
    rejectNew(error) {
      waiting = rejectNew(waiting, error);
    },
    close: () =>
      new Promise((resolve) => {
        closed = true;
        if (running) onIdle.push(resolve);
        else resolve();
      }),
  };
  return groups;
}

export function tooMany(): LedgerUnavailable {
  const cause = new DatabaseError('Too many operations wait for the ledger', { code: BUSY, unavailable: true });
  return new LedgerUnavailable(cause.message, { cause });
}

/** The part of a ledger that depends on the database. */
export interface Committer {
  /** Resolves when the operation is durable; a lock that ends with its process may be answered before (`mayBeLate`). */
  submit(operation: LedgerOperation): Promise<OperationResult>;
  /** The current row; null if there is no such row. Rejects with DatabaseError. */
  account(id: AccountName): Promise<AccountRow | null>;
  budget(id: string): Promise<BudgetRow | null>;
  probe(): Promise<void>;
  /**
   * Resolves when all that was committed before, by any gateway of the database, is on the disk. Absent if reading the
   * tables does so, or if all of it is. Rejects with DatabaseError.
   */
  flush?(): Promise<void>;
  /** Refuses new operations, and resolves when the others are answered and on the disk. */
  close(): Promise<void>;
}

/**
 * A database that commits groups of operations. A group is begun once and attempted until it succeeds, so an
 * attempt can use the outcome of earlier attempts.
 */
export interface Engine {
  /** The hash chain of the journal that this writer appends to. */
  readonly chain: string;
  begin(): Attempt;
  account(id: AccountName): Promise<AccountRow | null>;
  budget(id: string): Promise<BudgetRow | null>;
  probe(): Promise<void>;
  /** Writes as a group does, and takes it back. Rejects with the error that a group would get. */
  tryWrite(): Promise<void>;
  /** True for errors caused by concurrent transactions. The same group may be attempted again at once. */
  isConflict(error: DatabaseError): boolean;
  close(): Promise<void>;
}

/**
 * Commits the operations in one transaction. After an error, either they have no effect, or the next attempt finds out
 * that they were committed.
 */
export type Attempt = (operations: readonly LedgerOperation[]) => Promise<readonly OperationResult[]>;

/**
 * How long each kind of operation is retried. Work was done for a settlement, so it must survive a restart of the
 * database. A new call should fail soon instead.
 */
const PATIENCE_MS: Readonly<Record<LedgerOperation['kind'], number>> = {
  lock: 5_000,
  transfer: 5_000,
  settle: 30_000,
  release: 30_000,
  keep: 30_000,
  expire: 5_000,
};
const GROUP_MAX = 1024;
/** Between attempts while the database is unavailable. */
export const PAUSE_MIN_MS = 20;
export const PAUSE_MAX_MS = 500;

export const patienceMs = ({ kind, request }: LedgerOperation): number =>
  PATIENCE_MS[kind === 'lock' && request.workDone ? 'settle' : kind];

/** The code of an error of an engine whose database has lost acknowledged operations. Nothing is written then. */
export const LOST = 'lost';

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
export function createCommitter(engine: Engine, onBatch: ((batch: LedgerBatch) => void) | undefined): Committer {
  /**
   * The last attempt of a group failed, and none has succeeded since. A small write to another table may succeed all
   * the same: on a full disk it fits into a page that is there, and a group needs new ones.
   */
  let isFailing = false;
  const watched: Pick<Engine, 'begin' | 'isConflict'> = {
    isConflict: engine.isConflict,
    begin() {
      const attempt = engine.begin();
      return async (operations) => {
        try {
          const results = await attempt(operations);
          isFailing = false;
          return results;
        } catch (error) {
          if (error instanceof DatabaseError && error.unavailable) isFailing = true;
          throw error;
        }
      };
    },
  };
  let trying: Promise<void> | null = null;
  /** No load balancer sends calls to a gateway that is not ready, so it must find out by itself that it can write. */
  const tryWrite = async () => {
    await engine.tryWrite();
    isFailing = false;
  };
  const timed = async (group: readonly PendingOperation[], groups: GroupCommit) => {
    const startedAt = performance.now();
    await commit(watched, group, groups);
    onBatch?.({ chain: engine.chain, size: group.length, durationMs: performance.now() - startedAt });
  };
  const groups = createGroupCommit({ commit: timed, patience: patienceMs, groupMax: GROUP_MAX });
  return {
    submit: groups.submit,
    account: engine.account,
    budget: engine.budget,
    async probe() {
      await engine.probe();
      if (isFailing)
        await (trying ??= tryWrite().finally(() => {
          trying = null;
        }));
    },
    async close() {
      await groups.close();
      await engine.close();
    },
  };
}

async function commit(
  engine: Pick<Engine, 'begin' | 'isConflict'>,
  group: readonly PendingOperation[],
  groups: GroupCommit,
): Promise<void> {
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
      if (error.code === LOST) return reject(members, new LedgerUnavailable(error.message, { cause: error }));
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
      members = rejectOverdue(members, error);
      groups.rejectOverdue(error);
    }
  }
}

function reject(members: readonly PendingOperation[], error: unknown): void {
  for (const member of members) member.reject(error instanceof Error ? error : new Error(String(error)));
}
