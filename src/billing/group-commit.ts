import { LedgerUnavailable } from './ledger.ts';
import type { Operation, OperationResult } from './ledger-operations.ts';

/** An operation that waits until its group is durable. */
export interface Pending {
  readonly operation: Operation;
  /** Milliseconds on the monotonic clock. After this time the operation is not tried again. */
  readonly deadline: number;
  readonly resolve: (result: OperationResult) => void;
  readonly reject: (error: Error) => void;
}

export interface GroupCommit {
  submit(operation: Operation): Promise<OperationResult>;
  /** Rejects queued operations that are past their deadline. For a committer that cannot commit at the moment. */
  rejectOverdue(): void;
  /** Rejects queued operations that begin something, see rejectNew. For a committer that cannot write. */
  rejectNew(error: LedgerUnavailable): void;
  /** Refuses new operations, and resolves when the queue is empty and no group is running. */
  close(): Promise<void>;
}

interface GroupCommitOptions {
  /** Commits one group and resolves or rejects each of its members. Must not throw. */
  readonly commit: (group: readonly Pending[], groups: GroupCommit) => Promise<void>;
  /** How long an operation is retried, in milliseconds. */
  readonly patience: (operation: Operation) => number;
  readonly groupMax: number;
}

/** If a group was larger than this, the load is taken to be high. */
const FEW = 2;

/** Rejects the members that are past their deadline and returns the others. */
export function rejectOverdue(members: readonly Pending[]): Pending[] {
  const now = performance.now();
  return members.filter(({ operation, deadline, reject }) => {
    if (deadline > now) return true;
    reject(
      new LedgerUnavailable(`The database could not be reached in time to ${operation.kind} ${operation.request.id}`),
    );
    return false;
  });
}

/** Operations that end a call. They are not given up early, because work was done or money is held for the call. */
const ENDS: ReadonlySet<Operation['kind']> = new Set(['settle', 'release', 'keep']);

const isEnd = ({ kind, request }: Operation): boolean =>
  ENDS.has(kind) || (kind === 'lock' && request.workDone === true);

/** Rejects the members that do not end a call and returns the others. */
export function rejectNew(members: readonly Pending[], error: LedgerUnavailable): Pending[] {
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
export function createGroupCommit(options: GroupCommitOptions): GroupCommit {
  let waiting: Pending[] = [];
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
        waiting.push({ operation, deadline: performance.now() + options.patience(operation), resolve, reject });
        if (running) return;
        running = true;
        later();
      }),
    rejectOverdue() {
      waiting = rejectOverdue(waiting);
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
