import { setTimeout as delay } from 'node:timers/promises';
import { DatabaseError, type LedgerLog, type SqliteDatabase } from '#store';
import { LedgerUnavailable } from './ledger.ts';
import { decideOne } from './ledger-decide.ts';
import {
  FEW,
  isEnd,
  isLateEnd,
  mayBeLate,
  patienceMs,
  PAUSE_MAX_MS,
  PAUSE_MIN_MS,
  tooMany,
  WAITING_MAX,
  type Committer,
  type LedgerBatch,
} from './group-commit.ts';
import { Draft, type Submitted } from './ledger-draft.ts';
import { payloadOf } from './ledger-log-rows.ts';
import { LedgerMemory, RowsInMemory } from './ledger-memory.ts';
import { type LedgerOperation, type OperationResult, resolvedAt } from './ledger-operations.ts';
import { readAccount, readBudget } from './ledger-rows.ts';
import { checkWritten } from './check-written.ts';
import type { BatchRows } from './ledger-changes.ts';

/** There is only one writer at a time, also over restarts, so one chain is enough. */
export const EMBEDDED_CHAIN = 'main';

const COMMITS = new WeakMap<LedgerLog, LedgerLogCommit>();

/** The embedded engine: the log and the rows in memory, which all ledgers of one open database share. */
export function createSqliteCommitter(
  database: SqliteDatabase,
  now: () => number,
  onBatch: ((batch: LedgerBatch) => void) | undefined,
  flushMs: number | null,
): Committer {
  const { log, query } = database;
  let commit = COMMITS.get(log);
  if (!commit) COMMITS.set(log, (commit = new LedgerLogCommit(database)));
  const own = commit;
  const { memory } = own;
  if (onBatch) own.listen(onBatch);
  if (flushMs !== null) own.flushMs = flushMs;
  let isClosed = false;
  return {
    submit: (operation) =>
      isClosed ? Promise.reject(new LedgerUnavailable('The ledger is closed')) : own.submit(operation, now),
    account: async (id) => {
      const row = memory.accounts.get(id);
      return row === undefined ? readAccount(query, id) : row;
    },
    budget: async (id) => {
      const row = memory.budgets.get(id);
      return row === undefined ? readBudget(query, id) : row;
    },
    probe: () => own.probe(),
    close() {
      isClosed = true;
      return own.idle();
    },
  };
}

/** A lock that ends with its process is on the disk after this time at the latest. */
const LATE_MS = 100;
/** If more operations than this wait for the disk, new locks wait for it too. */
const LATE_MAX = 2_000;
/** At the end of the process, a record is given up after so many attempts that failed. */
const ATTEMPTS_AT_END = 2;
/** Rows are read together for so many operations. */
const READ_MAX = 1_000;

/**
 * The commit of the embedded ledger. An operation is decided at once, on rows in memory, and its changes take effect
 * there at once. Operations that are decided while a record is being flushed become the next record of the log, with
 * one flush. Later operations may build on a decision that is not on the disk yet, because the log is a sequence: if a
 * crash loses a record, it also loses everything after it. Callers get their answer when their record is on the disk.
 * Only a lock that ends with its process is answered at once (`mayBeLate`), because a crash would release it anyway.
 * With `flushMs`, so are ends of calls, as long as no answered end waits for the disk for longer than that (decision
 * 169).
 *
 * If a record cannot be written, the same record is written again until it can be. Meanwhile nothing is decided, so the
 * records in memory do not grow.
 */
class LedgerLogCommit {
  readonly memory = new LedgerMemory();
  /** The longest time in which a crash may undo an answered end of a call, in milliseconds; null: none is undone. */
  flushMs: number | null = null;
  readonly #database: SqliteDatabase;
  readonly #listeners = new Set<(batch: LedgerBatch) => void>();
  #draft = new Draft();
  #flushing: Draft | null = null;
  #isScheduled = false;
  /** Number of operations of the last record. */
  #before = 0;
  #timer: NodeJS.Timeout | null = null;
  /** Operations that wait for rows of the tables, or for a log that can be written. */
  #undecided: Submitted[] = [];
  #isReading = false;
  /** Number of decisions until now, and until the last reading of rows. */
  #decisions = 0;
  #readAt = 0;
  /** Why the log cannot be written at the moment. */
  #failure: DatabaseError | null = null;
  /** Why the log will never be written again by this process. */
  #ended: Error | null = null;
  #onIdle: (() => void)[] = [];
  /** Number of failed attempts to write a record, and the number at which `idle` gives up. */
  #failures = 0;
  #giveUpAt = 0;

  /** Records that are not on the disk yet, the newest first. */
  readonly #unwritten: () => readonly Draft[];

  constructor(database: SqliteDatabase) {
    this.#database = database;
    const unwritten = () => (this.#flushing === null ? [this.#draft] : [this.#draft, this.#flushing]);
    this.#unwritten = unwritten;
    const settled = () => this.#settled();
    database.log.beforeReading = settled;
  }

  async probe(): Promise<void> {
    const failure = this.#ended ?? this.#failure;
    if (failure !== null) throw failure;
  }

  listen(listener: (batch: LedgerBatch) => void): void {
    this.#listeners.add(listener);
  }

  submit(operation: LedgerOperation, now: () => number): Promise<OperationResult> {
    if (this.#ended !== null) return Promise.reject(this.#ended);
    const isNext = !this.#isReading && this.#failure === null && this.#undecided.length === 0;
    const answer = isNext && this.#mayAnswerNow(operation) ? this.#answerNow(operation, now()) : null;
    if (answer !== null) return answer;
    return new Promise((resolve, reject) => {
      const deadline = performance.now() + patienceMs(operation);
      const submitted: Submitted = { operation, now, deadline, resolve, reject, rows: null, result: null };
      if (isNext) return this.#decide(submitted);
      if (this.#failure?.full === true && !isEnd(operation)) return reject(isFull(this.#failure));
      if (this.#undecided.length >= WAITING_MAX && !isEnd(operation)) return reject(tooMany());
      this.#undecided.push(submitted);
    });
  }

  /**
   * Resolves when all operations are answered and on the disk, or when nobody waits for an answer and their record
   * cannot be written at two attempts from now on. So answered ends are not lost because of a failure that has passed.
   */
  idle(): Promise<void> {
    return new Promise((resolve) => {
      this.#onIdle.push(resolve);
      this.#giveUpAt = this.#failures + ATTEMPTS_AT_END;
      if (!this.#draft.isEmpty) this.#schedule();
      this.#tellIdle();
    });
  }

  /**
   * Decides an operation whose answer does not wait for the disk, and so needs no list of those who wait. null if rows
   * have to be read first, or if the answer tells of what was decided before.
   */
  #answerNow(operation: LedgerOperation, at: number): Promise<OperationResult> | null {
    const state = this.#rows();
    try {
      const decided = decideOne(state, operation, at);
      if (state.isMissingRows) return null;
      checkWritten(decided.written);
      if (operation.kind !== 'lock' && !decided.result.ok) return null;
      if (this.#take(at, decided.written)) this.#flushLater(operation);
      return Promise.resolve(decided.result);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  #decide(submitted: Submitted): void {
    const { operation, reject } = submitted;
    let state = submitted.rows ?? this.#rows();
    const at = submitted.now();
    let decided: ReturnType<typeof decideOne>;
    try {
      decided = decideOne(state, operation, at);
      if (state.isMissingRows) {
        // Rows that were read before other decisions may be wrong when the next ones have been read.
        if (submitted.rows !== null && this.#decisions !== this.#readAt) {
          state = this.#rows();
          decideOne(state, operation, at);
        }
        submitted.rows = state;
        return this.#read(submitted);
      }
      checkWritten(decided.written);
    } catch (error) {
      return reject(error as Error);
    }
    const { result, written } = decided;
    const isAtOnce = this.#mayAnswerNow(operation);
    const isWritten = this.#take(at, written);
    if (isWritten ? isAtOnce : operation.kind === 'lock') {
      submitted.resolve(result);
      if (isWritten) this.#flushLater(operation);
      return;
    }
    // A result without an effect tells of what was decided before, which must be on the disk first.
    const record = this.#draft.isEmpty ? this.#flushing : this.#draft;
    if (record === null) return submitted.resolve(result);
    submitted.rows = null;
    submitted.result = result;
    record.waiters.push(submitted);
    if (record === this.#draft) this.#schedule();
  }

  #take(at: number, written: BatchRows): boolean {
    this.memory.take(written);
    this.#decisions += 1;
    return this.#draft.add(at, written);
  }

  #rows(): RowsInMemory {
    return new RowsInMemory(this.memory, this.#unwritten);
  }

  /** Asked before the operation is added to the record. */
  #mayAnswerNow(operation: LedgerOperation): boolean {
    if (this.#draft.operations + 1 >= LATE_MAX) return false;
    return mayBeLate(operation) || (this.flushMs !== null && isLateEnd(operation) && this.#isInTime(this.flushMs));
  }

  /** No end that was answered waits for the disk for longer than `flushMs`. */
  #isInTime(flushMs: number): boolean {
    const since = this.#flushing?.lateSince ?? this.#draft.lateSince;
    return since === null || performance.now() - since < flushMs;
  }

  /**
   * Reads the rows that the decision needs, and those that waiting operations need, in one message. Other operations
   * wait, so nothing changes these rows meanwhile.
   */
  #read(submitted: Submitted): void {
    this.#isReading = true;
    const states = [submitted.rows!];
    for (const waiting of this.#undecided.slice(0, READ_MAX)) {
      // Rows of an earlier reading may have changed since.
      const state = this.#rows();
      waiting.rows = state;
      try {
        decideOne(state, waiting.operation, waiting.now());
      } catch {
        // It fails when it is decided.
      }
      if (state.isMissingRows) states.push(state);
    }
    for (const waiting of this.#undecided.slice(READ_MAX)) waiting.rows = null;
    const read = async () => {
      for (let pauseMs = PAUSE_MIN_MS; ; pauseMs = Math.min(pauseMs * 2, PAUSE_MAX_MS)) {
        try {
          await Promise.all(states.map((state) => state.read(this.#database.queryLog)));
          return;
        } catch (error) {
          if (!(error instanceof DatabaseError && error.unavailable)) throw error;
          if (error.code === 'closed' || performance.now() > submitted.deadline)
            throw new LedgerUnavailable(error.message, { cause: error });
          await delay(pauseMs);
        }
      }
    };
    read().then(
      () => {
        this.#isReading = false;
        this.#readAt = this.#decisions;
        if (this.#ended === null && this.#failure === null) this.#decide(submitted);
        else this.#undecided.unshift(submitted);
        this.#decideWaiting();
      },
      (error: Error) => {
        this.#isReading = false;
        for (const waiting of this.#undecided) waiting.rows = null;
        submitted.reject(error);
        this.#decideWaiting();
      },
    );
  }

  #decideWaiting(): void {
    const ended = this.#ended;
    if (ended !== null) rejectFrom(this.#undecided, () => ended);
    // If the log cannot be written, the tables may lack what was decided: the rows are read again afterwards.
    if (this.#failure !== null) for (const waiting of this.#undecided) waiting.rows = null;
    while (this.#undecided.length > 0 && !this.#isReading && this.#failure === null)
      this.#decide(this.#undecided.shift()!);
    this.#tellIdle();
  }

  /** After the callbacks of this turn, so that operations of callers that were just answered join the record. */
  #schedule(): void {
    if (this.#isScheduled || this.#flushing !== null) return;
    this.#isScheduled = true;
    if (this.#before > FEW) setImmediate(flushSoon, this);
    else setImmediate(flush, this);
  }

  /**
   * `answered`: what was answered and is not written yet. The disk is asked after half of `flushMs`, so that the other
   * half is left for the flush.
   */
  #flushLater(answered: LedgerOperation | null): void {
    if (this.flushMs !== null && answered !== null && isLateEnd(answered)) this.#draft.lateSince ??= performance.now();
    this.#timer ??= setTimeout(flushLate, this.flushMs === null ? LATE_MS : this.flushMs / 2, this);
  }

  flushLate(): void {
    this.#timer = null;
    if (!this.#draft.isEmpty) this.#schedule();
  }

  flush(): void {
    this.#isScheduled = false;
    const record = this.#draft;
    if (record.isEmpty || this.#ended !== null) return;
    this.#draft = new Draft();
    this.#flushing = record;
    void this.#write(record);
  }

  async #write(record: Draft): Promise<void> {
    const begun = performance.now();
    try {
      const payload = payloadOf(record);
      for (let pauseMs = PAUSE_MIN_MS; ; pauseMs = Math.min(pauseMs * 2, PAUSE_MAX_MS)) {
        try {
          await this.#database.log.append(record.at, payload);
          break;
        } catch (error) {
          this.#failed(record, error);
        }
        await delay(pauseMs);
        this.#rejectOverdue(record);
      }
    } catch (error) {
      return this.#end(error as Error);
    }
    this.#failure = null;
    this.#giveUpAt = this.#failures + ATTEMPTS_AT_END;
    this.#flushing = null;
    this.#before = record.operations;
    for (const { resolve, result } of record.waiters) resolve(resolvedAt(record.at, result!));
    for (const resolve of record.readers) resolve();
    const batch = { chain: EMBEDDED_CHAIN, size: record.operations, durationMs: performance.now() - begun };
    for (const listener of this.#listeners) listener(batch);
    const { waiters, readers, isEmpty, lateSince } = this.#draft;
    const isDue = lateSince !== null && performance.now() - lateSince >= this.flushMs! / 2;
    if (isDue || waiters.length > 0 || readers.length > 0 || (this.#onIdle.length > 0 && !isEmpty)) this.#schedule();
    else {
      this.#before = 0;
      // The time of a lock that came during the flush may have passed.
      if (!isEmpty) this.#flushLater(null);
    }
    this.#decideWaiting();
  }

  /** A record could not be written. Throws the error if it cannot be tried again. */
  #failed({ waiters, readers }: Draft, error: unknown): void {
    if (!(error instanceof DatabaseError) || error.code === 'closed') throw error;
    this.#failure = error;
    this.#failures += 1;
    // The tables can be read as they are on the disk.
    for (const resolve of [...readers.splice(0), ...this.#draft.readers.splice(0)]) resolve();
    if (!error.full) return;
    // The operator must free disk space, which takes longer than callers wait. So what begins a call is rejected at
    // once.
    const full = isFull(error);
    for (const queue of [waiters, this.#draft.waiters, this.#undecided])
      rejectFrom(queue, ({ operation }) => (isEnd(operation) ? null : full));
    this.#tellIdle();
  }

  #rejectOverdue({ waiters }: Draft): void {
    const now = performance.now();
    for (const queue of [waiters, this.#draft.waiters, this.#undecided])
      rejectFrom(queue, ({ operation: { kind, request }, deadline }) =>
        deadline > now
          ? null
          : new LedgerUnavailable(`The database could not be reached in time to ${kind} ${request.id}`),
      );
    this.#tellIdle();
  }

  /** Nothing can be written any more: what is in memory may differ from what is on the disk. */
  #end(cause: Error): void {
    const isClosed = cause instanceof DatabaseError && cause.code === 'closed';
    const message = isClosed
      ? 'The database is closed'
      : 'The log of the ledger cannot be written; restart the gateway';
    const error = new LedgerUnavailable(message, { cause });
    this.#ended = error;
    for (const record of [this.#flushing, this.#draft]) {
      if (record === null) continue;
      rejectFrom(record.waiters, () => error);
      for (const resolve of record.readers) resolve();
    }
    rejectFrom(this.#undecided, () => error);
    this.#flushing = null;
    this.#draft = new Draft();
    this.#tellIdle();
  }

  /** Resolves when all that was decided is on the disk; null if it is, or cannot be at the moment. */
  #settled(): Promise<void> | null {
    const record = this.#draft.isEmpty ? this.#flushing : this.#draft;
    if (record === null || this.#failure !== null) return null;
    return new Promise((resolve) => {
      record.readers.push(resolve);
      if (record === this.#draft) this.#schedule();
    });
  }

  #tellIdle(): void {
    if (this.#onIdle.length === 0 || this.#isReading || this.#undecided.length > 0) return;
    const records = [this.#flushing, this.#draft];
    const isWritten = records.every((record) => record === null || record.isEmpty);
    const isAwaited = records.some((record) => record !== null && record.waiters.length > 0);
    if (!isWritten && (this.#failure === null || isAwaited || this.#failures < this.#giveUpAt)) return;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    for (const resolve of this.#onIdle.splice(0)) resolve();
  }
}

const flush = (commit: LedgerLogCommit): void => commit.flush();
const flushLate = (commit: LedgerLogCommit): void => commit.flushLate();
/** One more turn, in which more operations join the record. */
const flushSoon = (commit: LedgerLogCommit): void => void setImmediate(flush, commit);

const isFull = (cause: DatabaseError) => new LedgerUnavailable('The disk of the database is full', { cause });

/** Takes those out of the queue for which there is an error, and rejects them with it. */
function rejectFrom<T extends Submitted>(queue: T[], errorOf: (submitted: T) => Error | null): void {
  for (const submitted of queue.splice(0)) {
    const error = errorOf(submitted);
    if (error === null) queue.push(submitted);
    else submitted.reject(error);
  }
}
