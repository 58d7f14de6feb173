import { loadStatement, type Prepare, type Row } from '#store';
import { isPlain, type LedgerState } from './ledger-changes.ts';
import { decide } from './ledger-decide.ts';
import { GENESIS, hashBatch } from './ledger-journal.ts';
import type { Operation, OperationResult } from './ledger-operations.ts';
import { toAccount, toBudget, toOpenLock } from './ledger-rows.ts';

/** One batch for the embedded engine; runs in the database's worker, inside one transaction. */
export interface SqliteBatch {
  readonly chain: string;
  readonly now: number;
  readonly operations: readonly Operation[];
}

const load = (name: string) => loadStatement(import.meta.url, `./sql/${name}.sql`);
const FIND_ACCOUNT = load('find-account');
const PUT_ACCOUNT = load('put-account');
const FIND_BUDGET = load('find-budget');
const PUT_BUDGET = load('put-budget');
const FIND_LOCK = load('find-lock-to-resolve');
const INSERT_LOCK = load('insert-lock');
const INSERT_NESTED_LOCK = load('insert-nested-lock');
const RESOLVE_LOCK = load('resolve-lock');
const CHANGE_LOCK = load('change-lock');
const FIND_TRANSFER = load('find-transfer');
const INSERT_TRANSFER = load('insert-transfer');
const INSERT_JOURNAL = load('insert-journal');
const INSERT_BATCH = load('insert-batch');
const CHAIN_HEAD = load('chain-head');

export function run(prepare: Prepare, args: unknown): readonly OperationResult[] {
  const { chain, now, operations } = args as SqliteBatch;
  const decision = decide(stateOf(prepare), operations, now);
  if (decision.changedLocks.length > 0) {
    const changeLock = prepare(CHANGE_LOCK);
    for (const { row } of decision.changedLocks) changeLock.run(row.id, row.lent, row.kept ? 1 : 0, row.expiresAt);
  }
  if (decision.journal.length === 0) return decision.results;

  const putAccount = prepare(PUT_ACCOUNT);
  for (const row of decision.accounts) putAccount.run(row.id, row.available, row.locked);
  const putBudget = prepare(PUT_BUDGET);
  for (const row of decision.budgets) putBudget.run(row.id, row.spent, row.locked);
  const insertLock = prepare(INSERT_LOCK);
  const insertNested = prepare(INSERT_NESTED_LOCK);
  for (const row of decision.newLocks) {
    const { id, account, amount, budget, createdAt, expiresAt, lockDetail } = row;
    const prices = JSON.stringify(row.prices);
    if (isPlain(row)) insertLock.run(id, account, amount, prices, budget, createdAt, expiresAt, lockDetail);
    else {
      const { parent, depth, lendable, lent } = row;
      insertNested.run(
        id,
        account,
        amount,
        prices,
        budget,
        createdAt,
        expiresAt,
        lockDetail,
        parent,
        depth,
        lendable,
        lent,
        row.kept ? 1 : 0,
      );
    }
  }
  const resolveLock = prepare(RESOLVE_LOCK);
  for (const row of decision.resolvedLocks)
    resolveLock.run(
      row.id,
      row.state,
      row.price,
      row.provider,
      row.charged,
      row.fee,
      row.feeBps,
      row.drawn,
      row.shortfall,
      row.resolvedAt,
      row.usage,
      row.detail,
    );
  const insertTransfer = prepare(INSERT_TRANSFER);
  for (const row of decision.transfers) insertTransfer.run(row.id, row.from, row.to, row.amount, row.memo, now);

  const head = prepare(CHAIN_HEAD).get(chain);
  const n = head ? Number(head.n) + 1 : 1;
  const prev = head ? (head.hash as string) : GENESIS;
  const insertJournal = prepare(INSERT_JOURNAL);
  decision.journal.forEach((row, position) =>
    insertJournal.run(
      chain,
      n,
      position,
      row.kind,
      row.id,
      row.account,
      row.counterparty,
      row.amount,
      row.charged,
      row.fee,
      row.drawn,
      row.price,
      row.at,
    ),
  );
  prepare(INSERT_BATCH).run(
    chain,
    n,
    now,
    decision.journal.length,
    prev,
    hashBatch(prev, chain, n, now, decision.journal),
  );
  return decision.results;
}

/** Rows are read when the decision first asks for them: the transaction holds the only writer. */
function stateOf(prepare: Prepare): LedgerState {
  const account = prepare(FIND_ACCOUNT);
  const lock = prepare(FIND_LOCK);
  const budget = prepare(FIND_BUDGET);
  const transfer = prepare(FIND_TRANSFER);
  const read = <T>(row: unknown, convert: (row: Row) => T): T | undefined =>
    row === undefined ? undefined : convert(row as Row);
  return {
    account: (id) => read(account.get(id), toAccount),
    lock: (id) => read(lock.get(id), toOpenLock),
    budget: (id) => read(budget.get(id), toBudget),
    hasTransfer: (id) => transfer.get(id) !== undefined,
  };
}
