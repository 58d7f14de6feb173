import { LedgerUnavailable } from './ledger.ts';
import type { Operation, OperationResult } from './ledger-operations.ts';

/** An operation that waits for its group to be durable. */
export interface Pending {
  readonly operation: Operation;
  /** On the monotonic clock, in milliseconds: after it the operation is not tried again. */
  readonly deadline: number;
  readonly resolve: (result: OperationResult) => void;
  readonly reject: (error: Error) => void;
}

export interface GroupCommit {
  submit(operation: Operation): Promise<OperationResult>;
  /**
   * Rejects what waits behind the running group and is past its deadline; for a committer that is kept from committing.
   */
  rejectOverdue(): void;
  /**
   * Rejects what waits behind the running group and is no end of work that was done, see rejectNew; for a committer
   * that can write nothing.
   */
  rejectNew(error: LedgerUnavailable): void;
  /** Resolves when nothing is waiting and nothing is running; nothing can be submitted any more. */
  close(): Promise<void>;
}

interface GroupCommitOptions {
  /** Commits one group and resolves or rejects each of its members. Must not throw. */
  readonly commit: (group: readonly Pending[], groups: GroupCommit) => Promise<void>;
  /** How long an operation is tried, in milliseconds. */
  readonly patience: (operation: Operation) => number;
  readonly groupMax: number;
}

/** A group of more says that many come. */
const FEW = 2;

/** Rejects the members whose time is over; returns the others. */
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

/** Ends of calls: work was done for them, or money is held for them. */
const ENDS: ReadonlySet<Operation['kind']> = new Set(['settle', 'release', 'keep']);

const isEnd = ({ kind, request }: Operation): boolean =>
  ENDS.has(kind) || (kind === 'lock' && request.workDone === true);

/** Rejects the members that begin something; returns the others. */
export function rejectNew(members: readonly Pending[], error: LedgerUnavailable): Pending[] {
  return members.filter(({ operation, reject }) => {
    if (isEnd(operation)) return true;
    reject(error);
    return false;
  });
}

/**
 * Collects operations while the previous group is being committed and commits them as one. There is no timer: an
 * idle ledger commits at once what arrived in this turn of the event loop, a busy one whatever came while it was
 * busy. Where many come, the next group gathers for one more turn: a larger one costs less for each of them.
 */
export function createGroupCommit(options: GroupCommitOptions): GroupCommit {
  let waiting: Pending[] = [];
  let running = false;
  /** Members of the group before. */
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
  // After the callbacks of this turn: whoever was just answered, or has just arrived, is in the next group.
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
