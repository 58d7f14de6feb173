import { type LedgerLog, type SqliteDatabase } from '#store';
import { GroupState } from './group-state.ts';
import { checkWritten } from './ledger-checks.ts';
import { decide } from './ledger-decide.ts';
import type { Engine } from './ledger-engine.ts';
import { payloadOf } from './ledger-log-rows.ts';
import { LedgerMemory } from './ledger-memory.ts';
import type { Operation, OperationResult } from './ledger-operations.ts';
import { readAccount, readBudget } from './ledger-rows.ts';

/** There is only one writer at a time, also over restarts, so one chain is enough. */
export const EMBEDDED_CHAIN = 'main';

/** State that all ledgers of one open database share. */
interface Shared {
  readonly memory: LedgerMemory;
  /** Resolves when the group that is being written has ended. */
  turn: Promise<unknown>;
}

const SHARED = new WeakMap<LedgerLog, Shared>();

/**
 * The embedded engine. A group is decided on rows in memory and written as one record of the log. A group is decided
 * only after the previous group is on disk, and memory changes only after the group itself is on disk. So a failed
 * group leaves nothing to undo. The tables follow later.
 */
export function createSqliteEngine(database: SqliteDatabase, now: () => number): Engine {
  const { log, query } = database;
  let shared = SHARED.get(log);
  if (!shared) SHARED.set(log, (shared = { memory: new LedgerMemory(), turn: Promise.resolve() }));
  const own = shared;
  const { memory } = own;

  const commit = async (operations: readonly Operation[]): Promise<readonly OperationResult[]> => {
    const state = new GroupState(memory);
    const at = now();
    let decision = decide(state, operations, at);
    while (state.isMissingRows) {
      await state.read(query);
      decision = decide(state, operations, at);
    }
    checkWritten(decision);
    const payload = payloadOf(decision);
    if (payload !== '') await log.append(at, payload);
    memory.take(decision);
    return decision.results;
  };

  return {
    chain: EMBEDDED_CHAIN,
    begin: () => (operations) => {
      const committed = own.turn.then(() => commit(operations));
      own.turn = committed.catch(() => {});
      return committed;
    },
    isConflict: () => false,
    account: async (id) => {
      const row = memory.accounts.get(id);
      return row === undefined ? readAccount(query, id) : row;
    },
    budget: async (id) => {
      const row = memory.budgets.get(id);
      return row === undefined ? readBudget(query, id) : row;
    },
    close: async () => {},
  };
}
