import { loadStatement, type Database } from '#store';
import type { SnapshotRows } from './chain.ts';

const KEEP = loadStatement(import.meta.url, './sql/keep-snapshot.sql');
const LIST = loadStatement(import.meta.url, './sql/list-snapshots.sql');
const FORGET = loadStatement(import.meta.url, './sql/forget-snapshots.sql');

/**
 * The table of treasury balances that were read while their blocks were new, for one network. All gateways share it.
 */
export function createSnapshotRows(database: Pick<Database, 'query'>, network: string): SnapshotRows {
  return {
    async list(treasury, limit) {
      const rows = await database.query(LIST, [network, treasury, limit]);
      return rows.map(({ cursor, height, balance }) => ({
        cursor: cursor as string,
        height: height as bigint,
        balance: balance as bigint,
      }));
    },
    async keep(treasury, { cursor, height, balance }) {
      await database.query(KEEP, [network, treasury, cursor, height, balance]);
    },
    async forget(treasury, below) {
      await database.query(FORGET, [network, treasury, below]);
    },
  };
}
