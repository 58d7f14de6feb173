import { randomBytes } from 'node:crypto';
import {
  DatabaseError,
  loadStatements,
  type PostgresDatabase,
  type PostgresSession,
  type Row,
  type Step,
} from '#store';
import { consumerOf, type AccountName } from './ledger.ts';
import { decide, type Decision } from './ledger-decide.ts';
import { isLateEnd, LOST, mayBeLate, type Attempt, type Engine } from './group-commit.ts';
import { hashGroup, movementsText, type ChainHead } from './journal.ts';
import type { LedgerOperation, OperationResult } from './ledger-operations.ts';
import { assumeState, readState, type Doubt } from './ledger-postgres-read.ts';
import { assumeSteps, ASSUMED_WRONGLY, changeSteps, openStep, writeSteps } from './ledger-postgres-write.ts';
import { readAccount, readBudget } from './ledger-rows.ts';
import type { ShortAccounts } from './ledger-lanes.ts';
import type { LateFlush } from './late-flush.ts';
import { KnownRows, OwnLocks } from './ledger-postgres-known.ts';
import { debitedOf, NO_IDS, planLeases, shortOf, withIds, type Ids, type LeasePlan } from './ledger-postgres-leases.ts';

const SQL = loadStatements(import.meta.url, '../sql/ledger-postgres.sql', [
  'pgSetupPlans',
  'pgSetupLimits',
  'pgSetupDurable',
  'pgBegin',
  'pgCommitTransaction',
  'pgFlushLater',
  'pgRollback',
  'pgTakeStripe',
  'pgChainEnd',
  'pgTryBatch',
]);

const SETUP = [SQL.pgSetupPlans, SQL.pgSetupLimits, SQL.pgSetupDurable];
const BEGIN: Step = { statement: SQL.pgBegin };
const COMMIT: Step = { statement: SQL.pgCommitTransaction };
const FLUSH_LATER: Step = { statement: SQL.pgFlushLater };
const ROLLBACK: Step = { statement: SQL.pgRollback };
const TAKE_STRIPE: Step = { statement: SQL.pgTakeStripe };

/** So much random text fits into no page that a table has already. A larger group than most is about as long. */
const TRIED_BYTES = 48 * 1024;

/** If a round trip takes longer, the connection is closed and the round trip counts as lost. */
const ATTEMPT_MS = 4_000;

/**
 * A group that trusted its memory of a lock would make a sum negative: another gateway has resolved the lock meanwhile,
 * and the sum of its stripe is checked before the lock is. The group is decided again, with the lock read.
 */
const REMEMBERED_WRONGLY = 'remembered_wrongly';

/**
 * Serialization failure, deadlock and lock timeout. The violations occur if another gateway was first to use an id or a
 * batch number, or to resolve a lock.
 */
const CONFLICTS: ReadonlySet<string> = new Set([
  '40001',
  '40P01',
  '55P03',
  'unique_violation',
  'not_null_violation',
  REMEMBERED_WRONGLY,
]);

/**
 * The PostgreSQL engine. It uses one dedicated connection, and one or two round trips per group. The first round trip
 * locks the rows in id order and reads them. Then the decision is made in this process. The second round trip writes
 * everything and commits. If the decision needs new accounts, they are created first, in a separate transaction, and
 * the group begins again. Locks that this gateway made are not read again, unless an attempt has failed.
 *
 * The first round trip is left out if all rows are known from earlier groups of this gateway. Then the group is written
 * on condition that they have not changed since, and is begun again with rows that are read if they have.
 */
export function createPostgresEngine(
  database: PostgresDatabase,
  { now, acknowledged, short, flush }: EngineOptions,
): Engine {
  const chain = `gateway-${randomBytes(8).toString('hex')}`;
  const ownLocks = new OwnLocks();
  const known = new KnownRows();
  let session: PostgresSession | null = null;
  /** Credits to fees and earnings are added to rows of this number, which other gateways do not touch. */
  let stripe = 0;
  /** The same number, if no other gateway has it: leases are stripes too. */
  let leaseStripe: number | null = null;
  // null if it must be read: at the start, and after every failure.
  let head: ChainHead | null = null;

  /** Refuses a database that lacks a group of any of these chains that was acknowledged. */
  const refuseLoss = async (own: ChainHead) => {
    // Groups of another chain may be committed meanwhile, so what is known of it is read before its end.
    for (const [other, known] of acknowledged)
      if (other === chain) refuseOlder(own, known);
      else refuseOlder(chainEnd((await send([{ statement: SQL.pgChainEnd, params: [other] }]))[0]![0]!), known);
  };
  const noteShort = (operations: readonly LedgerOperation[], { results }: Decision) => {
    for (const [index, { kind, request }] of operations.entries())
      if (kind === 'lock' && isShort(results[index]!)) short.refused(request.account);
  };

  const send = async (steps: readonly Step[]): Promise<readonly (readonly Row[])[]> => {
    const used = session!;
    const timer = setTimeout(() => used.destroy(), ATTEMPT_MS);
    try {
      return await used.pipeline(steps);
    } finally {
      clearTimeout(timer);
    }
  };

  const attempt = async (
    operations: readonly LedgerOperation[],
    doubts: Doubt[],
    own: OwnLocks | null,
    facts: GroupFacts = NOTHING_FOUND,
  ): Promise<readonly OperationResult[]> => {
    const { openAccounts: accounts } = facts;
    if (!session || session.lost) {
      session = await database.session(SETUP);
      const [free] = await send([TAKE_STRIPE]);
      leaseStripe = free!.length === 0 ? null : Number(free![0]!['stripe']);
      stripe = leaseStripe ?? 0;
      // The server may have crashed, and lost groups whose flush nobody waited for.
      head = null;
    }
    const emptied = withIds(facts.folded, debitedOf(operations));
    const plan = own && planLeases(operations, leaseStripe, { known, folded: emptied, refill: facts.refill });
    // Once for a group, however often it is begun again.
    if (facts === NOTHING_FOUND) for (const id of plan?.refill.accounts ?? NONE) short.filled(consumerOf(id)!);
    const folded = plan ? withIds(emptied, plan.outdated) : emptied;
    if (head !== null && own !== null && doubts.length === 0 && facts === NOTHING_FOUND) {
      const results = await assume(operations, doubts, head, own, plan);
      if (results !== null) return results;
    }
    const askHead = head === null;
    const state = await readState(send, operations, { chain, askHead, doubts, own, known, plan, folded });
    if (head === null) await refuseLoss(state.head);
    if (state.committed) {
      const { results } = state.committed;
      await send([ROLLBACK]);
      return operations.map((operation) => results.get(operation)!);
    }
    const { n, hash: prev } = head ?? state.head;
    const at = now();
    const again = async (more: Partial<GroupFacts>, from = own) => {
      ownLocks.forget(operations);
      await send([ROLLBACK]);
      return attempt(operations, doubts, from, { ...facts, ...more });
    };
    if (state.unread.accounts.size > 0) {
      known.note(state.read.accounts, state.read.budgets);
      return again({ refill: withIds(facts.refill, state.unread) });
    }
    const before = (id: AccountName, ofStripe?: number) => {
      const row = state.account(id, ofStripe);
      return row && accounts.has(id) && row.available === 0n && row.locked === 0n ? undefined : row;
    };
    const decision = decide({ ...state, account: before }, operations, at);
    if (
      own &&
      (areOwnRefused(operations, decision, own) || (await state.isAnyInUse(refusedLocks(operations, decision))))
    )
      return again({}, null);
    noteShort(operations, decision);
    const lacking = shortOf(operations, decision, state, folded);
    if (lacking.isCertain || (await state.hasLeases(lacking.ids)))
      return again({ folded: withIds(folded, lacking.ids) });
    const missing = decision.journal.length === 0 ? [] : missingAccounts(decision, accounts);
    if (missing.length > 0) {
      // Accounts are created in a separate transaction. A transaction that already holds row locks would take the new
      // ones out of order, and could deadlock.
      ownLocks.forget(operations);
      await send([ROLLBACK, BEGIN, openStep(missing), COMMIT]);
      return attempt(operations, doubts, null, { ...facts, openAccounts: new Set([...accounts, ...missing]) });
    }
    if (decision.journal.length === 0) {
      // Keeping a lock writes no journal row. It is idempotent, so it can be repeated after a lost response.
      const changes = changeSteps(decision);
      await send(changes.length === 0 ? [ROLLBACK] : [...changes, COMMIT]);
    } else {
      await write(operations, decision, { doubts, at, head: { n, hash: prev }, credited: state.credited });
      known.note(state.read.accounts, state.read.budgets);
    }
    ownLocks.take(decision);
    known.take(decision, state.credited);
    return decision.results;
  };

  /** Writes and commits a decision that has an effect. `before`: statements of the same transaction before it. */
  const write = async (
    operations: readonly LedgerOperation[],
    decision: Decision,
    { doubts, at, head: { n, hash: prev }, credited }: GroupWriteOptions,
    before: readonly Step[] = [],
  ) => {
    const group = { chain, n: n + 1, at, count: decision.journal.length };
    const movements = movementsText(decision.journal);
    const hash = hashGroup(prev, group, movements);
    const steps = writeSteps(decision, { ...group, prev, hash, movements }, { number: stripe, credited });
    const isOfLocks = operations.every(endsWithProcess);
    const isFlushedLater = isOfLocks || (flush?.isInTime === true && mayBeUndone(operations, decision));
    const sentAt = performance.now();
    try {
      await send([...before, ...steps, ...(isFlushedLater ? [FLUSH_LATER] : []), COMMIT]);
    } catch (error) {
      if (error instanceof DatabaseError && error.unavailable)
        doubts.push({ hash, results: resultsByOperation(operations, decision) });
      throw error;
    }
    head = { n: n + 1, hash };
    if (!isFlushedLater) acknowledged.set(chain, head);
    else if (!isOfLocks) flush!.noteLate(chain, sentAt);
  };

  /**
   * Decides on known rows, and writes on condition that they are still the same. null without an effect: a row must be
   * read, something is refused, or a row has changed.
   */
  const assume = async (
    operations: readonly LedgerOperation[],
    doubts: Doubt[],
    last: ChainHead,
    own: OwnLocks,
    plan: LeasePlan | null,
  ): Promise<readonly OperationResult[] | null> => {
    const state = assumeState(operations, { known, own, plan });
    if (state === null) return null;
    const at = now();
    const decision = decide(state, operations, at);
    const isWhole = decision.results.every(isInFull) && missingAccounts(decision, NONE).length === 0;
    if (!isWhole || decision.journal.length === 0) return null;
    const { credited } = state;
    try {
      const conditions = [BEGIN, ...assumeSteps(state)];
      await write(operations, decision, { doubts, at, head: last, credited }, conditions);
    } catch (error) {
      if (!(error instanceof DatabaseError && error.code === ASSUMED_WRONGLY)) throw error;
      // Its COMMIT, which was sent with it, has ended the failed transaction.
      known.wereWrong();
      return null;
    }
    known.wereRight();
    ownLocks.take(decision);
    known.take(decision, credited);
    return decision.results;
  };

  return {
    chain,
    account: (id) => readAccount(database.query, id),
    budget: (id) => readBudget(database.query, id),
    begin(): Attempt {
      const doubts: Doubt[] = [];
      let own: OwnLocks | null = ownLocks;
      return async (operations) => {
        try {
          return await attempt(operations, doubts, own);
        } catch (error) {
          const trusted = own !== null;
          head = null;
          own = null;
          ownLocks.forget(operations);
          // Ends the failed transaction. If the connection is lost, the server has ended the transaction itself.
          if (session && !session.lost) await send([ROLLBACK]).catch(() => session?.destroy());
          if (trusted && error instanceof DatabaseError && error.code === 'check_violation')
            throw new DatabaseError(error.message, { code: REMEMBERED_WRONGLY, cause: error });
          throw isOfStandby(error) ? standbyError(error) : error;
        }
      };
    },
    async probe() {
      const known = acknowledged.get(chain);
      if (known === undefined) return;
      const [row] = await database.query(SQL.pgChainEnd, [chain]);
      // A standby may be behind at any time, and takes no operations.
      if (row!['standby'] === 0n) refuseOlder(chainEnd(row!), known);
    },
    async tryWrite() {
      // Not on the connection of the groups, where one may be under way.
      const own = await database.session(SETUP);
      try {
        const movements = randomBytes(TRIED_BYTES).toString('base64');
        await own.pipeline([BEGIN, { statement: SQL.pgTryBatch, params: [chain, movements] }, ROLLBACK]);
      } finally {
        await own.close().catch(() => {});
      }
    },
    isConflict: (error) => CONFLICTS.has(error.code),
    async close() {
      await session?.close().catch(() => {});
    },
  };
}

interface EngineOptions {
  readonly now: () => number;
  /**
   * By chain, of all engines of this process: the last group that was flushed when its operations were answered. None
   * of them writes to a database that lacks one.
   */
  readonly acknowledged: Map<string, ChainHead>;
  /** Is told of accounts whose operations take several round trips. */
  readonly short: Pick<ShortAccounts, 'refused' | 'filled'>;
  /** null: a group that ends a call waits for the disk. */
  readonly flush: LateFlush | null;
}

const isShort = (result: OperationResult): boolean =>
  !result.ok && (result.reason === 'insufficient' || result.reason === 'budget_exceeded');

const chainEnd = (row: Row): ChainHead => ({ n: Number(row['n']), hash: row['hash'] as string });

/**
 * Throws DatabaseError `lost` if the journal of this gateway ends before a group whose operations were answered. So it
 * is after a failover to a standby that had not received everything, and after a restore beside a running gateway.
 */
function refuseOlder(head: ChainHead, durable: ChainHead): void {
  if (head.n > durable.n || (head.n === durable.n && head.hash === durable.hash)) return;
  throw new DatabaseError(
    `The database lacks operations that were acknowledged: the journal of this gateway ends with group ${head.n}, and had group ${durable.n}. ` +
      'Bring back the database that has them, or restart the gateway: it says what is missing and how to go on without it.',
    { code: LOST },
  );
}

interface GroupWriteOptions {
  readonly doubts: Doubt[];
  readonly at: number;
  /** The group before it. */
  readonly head: ChainHead;
  readonly credited: ReadonlySet<string>;
}

/** A standby refuses to begin a transaction that writes, with the code of what is not supported. */
const isOfStandby = (error: unknown): error is DatabaseError =>
  error instanceof DatabaseError && error.code === '0A000';

/** It may become the primary in a moment, so the group is tried again. */
const standbyError = (cause: DatabaseError) =>
  new DatabaseError(cause.message, { code: cause.code, unavailable: true, cause });

/** No other row of the database refers to the lock before it is settled. */
const endsWithProcess = (operation: LedgerOperation): boolean =>
  mayBeLate(operation) && operation.kind === 'lock' && operation.request.endsWithCall === true;

/** A crash may undo the group, although its operations were answered. None of the answers tells of an earlier group. */
const mayBeUndone = (operations: readonly LedgerOperation[], { results }: Decision): boolean =>
  operations.every(
    (operation, index) =>
      endsWithProcess(operation) || (isLateEnd(operation) && (operation.kind === 'lock' || results[index]!.ok)),
  );

const NONE: ReadonlySet<string> = new Set();

interface GroupFacts {
  /** Accounts that were created for this group. While their balances are zero, the decision treats them as missing. */
  readonly openAccounts: ReadonlySet<string>;
  /** Accounts and budgets whose stripes give back what they have, because something was refused without it. */
  readonly folded: Ids;
  /** Accounts and budgets whose stripes have less than was known. */
  readonly refill: Ids;
}

const NOTHING_FOUND: GroupFacts = { openAccounts: NONE, folded: NO_IDS, refill: NO_IDS };

/** False if it was refused, or if it would be charged something else with more rows. */
const isInFull = (result: OperationResult): boolean =>
  result.ok && !('drawn' in result && (result.drawn > 0n || result.shortfall > 0n));

/** True if an end of a lock was refused that was not read. Another gateway may have ended it before. */
const areOwnRefused = (operations: readonly LedgerOperation[], { results }: Decision, own: OwnLocks): boolean =>
  operations.some(
    ({ kind, request }, index) => kind !== 'lock' && !results[index]!.ok && own.get(request.id) !== undefined,
  );

/** Accounts that the decision changes and that have no row yet. */
const missingAccounts = ({ accounts }: Decision, openAccounts: ReadonlySet<string>): readonly string[] =>
  accounts.filter((row) => row.isNew && !openAccounts.has(row.id)).map(({ id }) => id);

/**
 * The ids of locks that the decision refused. They are not written, so no constraint of the database shows whether they
 * are in use.
 */
function refusedLocks(operations: readonly LedgerOperation[], { results }: Decision): readonly string[] {
  const ids: string[] = [];
  for (const [index, { kind, request }] of operations.entries())
    if (kind === 'lock' && !results[index]!.ok) ids.push(request.id);
  return ids;
}

function resultsByOperation(
  operations: readonly LedgerOperation[],
  decision: Decision,
): ReadonlyMap<LedgerOperation, OperationResult> {
  return new Map(operations.map((operation, index) => [operation, decision.results[index]!]));
}
