/* The providers of a database, for programs without a gateway. */
import { loadStatement, type Database } from '#store';
import type { Ban } from './bans.ts';

export { createBanStore } from './bans.ts';
export { registeredNames } from './registered-names.ts';

/** A provider that ever registered, or that is banned. */
export interface KnownProvider {
  /** Public key. */
  readonly provider: string;
  /** Ledger name of its account, and its name. null for a provider that never registered. */
  readonly account: string | null;
  readonly name: string | null;
  readonly isConnected: boolean;
  /** Epoch milliseconds since which it has been away, and of its last registration. null if it never was here. */
  readonly leftAt: number | null;
  readonly registeredAt: number | null;
  readonly ban: Ban | null;
}

/** The provider of an account. */
export interface Seller {
  /** Public key. */
  readonly provider: string;
  readonly isConnected: boolean;
  readonly isBanned: boolean;
}

const LIST = loadStatement(import.meta.url, './sql/list-providers.sql');
const IS_SEEN = loadStatement(import.meta.url, './sql/is-seen-provider.sql');
const FIND_SELLER = loadStatement(import.meta.url, './sql/find-seller.sql');

/** The provider that `account` (a ledger account) is. null if it never registered services. */
export async function findSeller(database: Pick<Database, 'query'>, account: string): Promise<Seller | null> {
  const [row] = await database.query(FIND_SELLER, [account]);
  if (!row) return null;
  return {
    provider: row['provider'] as string,
    isConnected: Boolean(row['connected']),
    isBanned: Boolean(row['banned']),
  };
}

/** A page of all known providers, by their public keys. */
export async function listProviders(
  database: Pick<Database, 'query'>,
  { limit, offset }: { readonly limit: number; readonly offset: number },
): Promise<readonly KnownProvider[]> {
  const rows = await database.query(LIST, [limit, offset]);
  return rows.map((row) => ({
    provider: row['provider'] as string,
    account: row['account'] as string | null,
    name: row['name'] as string | null,
    isConnected: row['connected_at'] !== null && row['left_at'] === null,
    leftAt: row['left_at'] === null ? null : Number(row['left_at']),
    registeredAt: row['updated_at'] === null ? null : Number(row['updated_at']),
    ban:
      row['reason'] === null
        ? null
        : {
            provider: row['provider'] as string,
            reason: row['reason'] as string,
            at: Number(row['banned_at']),
          },
  }));
}

/** Whether a provider has ever connected. */
export async function isSeenProvider(database: Pick<Database, 'query'>, provider: string): Promise<boolean> {
  return (await database.query(IS_SEEN, [provider])).length > 0;
}
