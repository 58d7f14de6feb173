import { createDueWorker, type DueWorker, loadStatements, rowsParam, type Database } from '#store';
import { hashOf, isWallet, DAY_MS } from './call-facts.ts';
import { findState } from './roll-up-state.ts';

interface KnownAccountsOptions {
  readonly database: Database;
  /** Epoch milliseconds. */
  readonly now: () => number;
  /** Milliseconds between two searches. null: only `run` searches. */
  readonly everyMs: number | null;
  readonly onError: (error: unknown) => void;
}

const SQL = loadStatements(import.meta.url, './sql/known-accounts.sql', [
  'newAccounts',
  'addKnownUsers',
  'noteAccounts',
  'holdState',
  'countKnownAccounts',
  'noteCountedAccounts',
]);
const HOLD = { statement: SQL.holdState };

/**
 * Statements that count the new accounts, in the transaction that adds them. No other transaction may count at the same
 * time.
 */
export const COUNT_KNOWN_ACCOUNTS = [{ statement: SQL.countKnownAccounts }, { statement: SQL.noteCountedAccounts }];

/**
 * Each search begins this much before the last one, because the clocks of gateways differ and transactions commit later
 * than their timestamps.
 */
const OVERLAP_MS = 3_600_000;
const PAGE = 5_000;

/**
 * Searches for accounts that have a key, a deposit or a wallet but no calls yet. Finding the same account again has no
 * effect.
 */
export function createKnownAccounts({ database, now, everyMs, onError }: KnownAccountsOptions): DueWorker {
  return createDueWorker({
    pauseMs: everyMs,
    onError: (error, failures) => {
      if (failures === 1) onError(error);
    },
    async turn() {
      const at = now();
      const accounts = await database.snapshot(null, async (query) => {
        const { accountsAt } = await findState(query);
        return query(SQL.newAccounts, [accountsAt - OVERLAP_MS]);
      });
      const rows = accounts.map(({ account, at: since }) => {
        const name = account as string;
        return [`${hashOf(name)}`, isWallet(name) ? 1 : 0, Math.floor(Number(since) / DAY_MS)];
      });
      for (let from = 0; from < rows.length; from += PAGE) {
        const added = { statement: SQL.addKnownUsers, params: [rowsParam(rows.slice(from, from + PAGE))] };
        await database.batch([HOLD, added, ...COUNT_KNOWN_ACCOUNTS]);
      }
      await database.query(SQL.noteAccounts, [at]);
    },
  });
}
