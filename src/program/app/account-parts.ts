import { accountTotals, findLocks, listMovements } from '#billing/compose';
import {
  type AccountTotals,
  type ArchivedCallPlace,
  findArchivedCall,
  findTransfer,
  type FoundLocks,
  type LocksQuery,
  type TransferRecord,
} from '#billing';
import type { Database } from '#store';
import { createKeyUsage, type FindKeyUsage } from '#pages/administration';
import { findSeller, type Seller } from '#network/providers';
// Only narrow public APIs, see administration.ts.

type MovementsPage = Parameters<typeof listMovements> extends [unknown, ...infer Page] ? Page : never;

/** The records of accounts in the database, for their owners and for the operator. */
export interface AccountRecords {
  totals(account: string): Promise<AccountTotals>;
  seller(account: string): Promise<Seller | null>;
  findTransfer(id: string): Promise<TransferRecord | null>;
  movements(...query: MovementsPage): Promise<readonly TransferRecord[]>;
  findLocks(query: LocksQuery): Promise<FoundLocks>;
  findArchived(id: string, account: string | null): Promise<ArchivedCallPlace | null>;
  readonly usage: FindKeyUsage;
}

export const accountRecords = (database: Database, now: () => number): AccountRecords => ({
  totals: (account) => accountTotals(database, account),
  seller: (account) => findSeller(database, account),
  findTransfer: (id) => findTransfer(database, id),
  movements: (...query) => listMovements(database, ...query),
  findLocks: (query) => findLocks(database, query),
  findArchived: (id, account) => findArchivedCall(database.query, id, account),
  usage: createKeyUsage(database, now),
});
