import {
  DatabaseError,
  loadStatements,
  type OpenDatabase,
  type PostgresDatabase,
  type Row,
  type Statement,
  type Value,
} from '#store';
import {
  LedgerUnavailable,
  type KeepResult,
  type Ledger,
  type LockResult,
  type ReleaseResult,
  type SettleResult,
  type TransferResult,
} from './ledger.ts';
import { createCommitter, type Committer, type LedgerBatch } from './group-commit.ts';
import type { ChainHead } from './journal.ts';
import { checkOperation, type LedgerOperation, type OperationResult } from './ledger-operations.ts';
import { createPostgresEngine } from './ledger-postgres.ts';
import { createLanes, ShortAccounts } from './ledger-lanes.ts';
import { LateFlush } from './late-flush.ts';
import { toLock } from './ledger-rows.ts';
import { createSqliteCommitter } from './ledger-sqlite.ts';

const SQL = loadStatements(import.meta.url, '../sql/ledger.sql', [
  'findLock',
  'findChildren',
  'findFunded',
  'overdueLocks',
  'overdueUnkeptLocks',
  'spentOfBudgets',
]);

/** 0.10 USD, as in the view `funded_accounts`. */
const FUNDED_FROM = 100_000n;
const EXPIRE_LIMIT = 1_000;
const CHILDREN_LIMIT = 1_000;

interface LedgerOptions {
  readonly database: OpenDatabase;
  readonly now?: () => number;
  readonly onBatch?: (batch: LedgerBatch) => void;
  /**
   * Operations are decided in the order in which they are submitted, also those of different accounts. Default false:
   * an account that lacks money is decided on apart.
   */
  readonly inOrder?: boolean;
  /**
   * Ends of calls with `mayBeLate` are answered before the disk has them. A crash undoes those of at most this time, in
   * milliseconds. null: it undoes none. Default null.
   */
  readonly flushMs?: number | null;
}

/**
 * The ledger on a database. `now` gives epoch milliseconds. `close` waits for submitted operations and leaves the
 * database open. Invalid requests (a negative amount, a transfer to itself, a fee above 100 %, more lendable than
 * locked) reject with RangeError.
 */
export async function createLedger(options: LedgerOptions): Promise<Ledger> {
  const { database, now = Date.now, flushMs = null } = options;
  const committer =
    database.engine === 'sqlite'
      ? createSqliteCommitter(database, now, options.onBatch, flushMs)
      : createPostgresCommitter(database, { ...options, now, flushMs });

  const submit = (operation: LedgerOperation): Promise<OperationResult> => {
    try {
      checkOperation(operation);
    } catch (error) {
      return Promise.reject(error);
    }
    return committer.submit(operation);
  };
  const read = (statement: Statement, params: readonly Value[]): Promise<readonly Row[]> =>
    database.query(statement, params).catch(toUnavailable);

  return {
    lock: (request) => submit({ kind: 'lock', request }) as Promise<LockResult>,
    settle: (request) => submit({ kind: 'settle', request }) as Promise<SettleResult>,
    release: (request) => submit({ kind: 'release', request }) as Promise<ReleaseResult>,
    transfer: (request) => submit({ kind: 'transfer', request }) as Promise<TransferResult>,
    keep: (id, until) => submit({ kind: 'keep', request: { id, until } }) as Promise<KeepResult>,
    async expire(at, limit = EXPIRE_LIMIT, spare) {
      const spareKept = spare === 'kept';
      const rows = await read(spareKept ? SQL.overdueUnkeptLocks : SQL.overdueLocks, [at, limit]);
      const requests = rows.map((row) => ({ id: row.id as string, account: row.account as string, at, spareKept }));
      const results = await Promise.all(requests.map((request) => submit({ kind: 'expire', request })));
      return requests.filter((_, index) => results[index]!.ok).map(({ id }) => id);
    },
    async balance(account) {
      const row = await committer.account(account).catch(toUnavailable);
      return row && { available: row.available, locked: row.locked };
    },
    async isFunded(account) {
      const row = await committer.account(account).catch(toUnavailable);
      if (row === null || row.available + row.locked >= FUNDED_FROM) return row !== null;
      return (await read(SQL.findFunded, [account])).length > 0;
    },
    async find(id) {
      const [row] = await read(SQL.findLock, [id]);
      if (row === undefined) return null;
      // What is told of an ended call may be signed or kept elsewhere, whichever gateway has ended it.
      if (row['state'] !== 'held' && committer.flush !== undefined) await committer.flush().catch(toUnavailable);
      return toLock(row);
    },
    children: async (id, limit = CHILDREN_LIMIT) => (await read(SQL.findChildren, [id, limit])).map(toLock),
    async budget(id) {
      const row = await committer.budget(id).catch(toUnavailable);
      return { spent: row?.spent ?? 0n, locked: row?.locked ?? 0n };
    },
    async spentOf(name) {
      const [row] = await read(SQL.spentOfBudgets, [name]);
      return row!['spent'] as bigint;
    },
    probe: committer.probe,
    close: () => committer.close(),
  };
}

function createPostgresCommitter(
  database: PostgresDatabase,
  {
    now,
    onBatch,
    inOrder = false,
    flushMs,
  }: Omit<LedgerOptions, 'now'> & { readonly now: () => number; readonly flushMs: number | null },
): Committer {
  const short = new ShortAccounts();
  const acknowledged = new Map<string, ChainHead>();
  const flush = flushMs === null ? null : new LateFlush(database, flushMs, acknowledged);
  const create = () => createCommitter(createPostgresEngine(database, { now, acknowledged, short, flush }), onBatch);
  const committer = inOrder ? create() : createLanes(create(), create(), short);
  if (flush === null) return committer;
  const close = async () => {
    await committer.close();
    await flush.close();
  };
  return { ...committer, flush: () => flush.now(), close };
}

function toUnavailable(error: unknown): never {
  if (error instanceof DatabaseError && error.unavailable) throw new LedgerUnavailable(error.message, { cause: error });
  throw error;
}

const BATCH = 1_000;

/**
 * Expires every lock whose `expiresAt` is at or before `until` (epoch milliseconds). Resolves with the number of locks.
 */
export async function expireAll(ledger: Ledger, until: number): Promise<number> {
  return repeat(() => ledger.expire(until, BATCH));
}

/**
 * Expires every held lock that is not kept, even before its `expiresAt`. Resolves with the number of locks. It is for
 * the start of a gateway that is the only user of its database: the process that made these locks is gone, and so are
 * their calls.
 */
export async function expireOrphans(ledger: Ledger): Promise<number> {
  return repeat(() => ledger.expire(Number.MAX_SAFE_INTEGER, BATCH, 'kept'));
}

async function repeat(expire: () => Promise<readonly string[]>): Promise<number> {
  let total = 0;
  for (;;) {
    const expired = await expire();
    total += expired.length;
    if (expired.length < BATCH) return total;
  }
}
