import { loadStatements, type Database, type Step } from '#store';
import { servicesFromText } from './registered-services.ts';

/* The providers of a database and their bans. Programs without a gateway use them too. */

const PROVIDERS_SQL = loadStatements(import.meta.url, './sql/providers.sql', [
  'listProviders',
  'isSeenProvider',
  'findSeller',
  'putBan',
  'deleteBan',
  'listBans',
]);

const REGISTRATIONS_SQL = loadStatements(import.meta.url, './sql/registrations.sql', ['listDocuments']);

const NODES_SQL = loadStatements(import.meta.url, './sql/nodes.sql', ['bumpClock', 'pgBumpClock']);

/** The step with which every change of the registry begins. It takes the next version of the registry's clock. */
export const bumpClock = ({ engine }: Pick<Database, 'engine'>): Step => ({
  statement: engine === 'sqlite' ? NODES_SQL.bumpClock : NODES_SQL.pgBumpClock,
});

/** A provider that ever registered, or that is banned. */
export interface KnownProvider {
  /** Public key. */
  readonly provider: string;
  /** The ledger name of the provider's account, and the provider's name. null for a provider that never registered. */
  readonly account: string | null;
  readonly name: string | null;
  readonly isConnected: boolean;
  /** When the provider left, and when it last registered, in epoch milliseconds. null if that never happened. */
  readonly leftAt: number | null;
  readonly registeredAt: number | null;
  readonly ban: Ban | null;
}

export interface Seller {
  /** Public key. */
  readonly provider: string;
  readonly isConnected: boolean;
  readonly isBanned: boolean;
}

/** The provider that `account` (a ledger account) is. null if it never registered services. */
export async function findSeller(database: Pick<Database, 'query'>, account: string): Promise<Seller | null> {
  const [row] = await database.query(PROVIDERS_SQL.findSeller, [account]);
  if (!row) return null;
  return {
    provider: row['provider'] as string,
    isConnected: Boolean(row['connected']),
    isBanned: Boolean(row['banned']),
  };
}

export async function listProviders(
  database: Pick<Database, 'query'>,
  { limit, offset }: { readonly limit: number; readonly offset: number },
): Promise<readonly KnownProvider[]> {
  const rows = await database.query(PROVIDERS_SQL.listProviders, [limit, offset]);
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

export async function isSeenProvider(database: Pick<Database, 'query'>, provider: string): Promise<boolean> {
  return (await database.query(PROVIDERS_SQL.isSeenProvider, [provider])).length > 0;
}

export interface Ban {
  /** Public key. */
  readonly provider: string;
  /** The operator's reason, which the provider is told. */
  readonly reason: string;
  /** Epoch milliseconds. */
  readonly at: number;
}

/** The bans in the database. Each change increments the registry's clock, so that every gateway reads them again. */
interface BanStore {
  /** Bans a provider, or gives its ban another reason. */
  put(provider: string, reason: string): Promise<Ban>;
  /** False if the provider was not banned. */
  remove(provider: string): Promise<boolean>;
  list(): Promise<readonly Ban[]>;
}

export function createBanStore(
  database: Pick<Database, 'query' | 'batch' | 'engine'>,
  { now }: { readonly now: () => number },
): BanStore {
  const bump = bumpClock(database);
  return {
    async put(provider, reason) {
      const [, rows] = await database.batch([
        bump,
        { statement: PROVIDERS_SQL.putBan, params: [provider, reason, now()] },
      ]);
      return toBan(rows![0]!);
    },
    async remove(provider) {
      const [, rows] = await database.batch([bump, { statement: PROVIDERS_SQL.deleteBan, params: [provider] }]);
      return rows!.length > 0;
    },
    list: async () => (await database.query(PROVIDERS_SQL.listBans)).map(toBan),
  };
}

const toBan = (row: Readonly<Record<string, unknown>>): Ban => ({
  provider: row['provider'] as string,
  reason: row['reason'] as string,
  at: Number(row['at']),
});

/** The bans in memory, as this gateway last read them. */
export interface Bans {
  banOf(provider: string): Ban | null;
  /** Reads the bans again. Rejects with the database's error, and the last known ones stay in force. */
  load(): Promise<void>;
}

/** `onBanned` gets each provider that was not banned at the last read. */
export function createBans(store: Pick<BanStore, 'list'>, onBanned: (provider: string) => void): Bans {
  let bans: ReadonlyMap<string, Ban> = new Map();
  return {
    banOf: (provider) => bans.get(provider) ?? null,
    async load() {
      const before = bans;
      bans = new Map((await store.list()).map((ban) => [ban.provider, ban]));
      for (const provider of bans.keys()) if (!before.has(provider)) onBanned(provider);
    },
  };
}

/**
 * The names of all services that providers registered, including those of providers that are not connected. For
 * commands. A gateway uses its catalogue instead.
 */
export async function registeredNames(database: Pick<Database, 'query'>): Promise<ReadonlySet<string>> {
  const rows = await database.query(REGISTRATIONS_SQL.listDocuments);
  return new Set(rows.flatMap((row) => servicesFromText(row['document'] as string).map(({ service }) => service.name)));
}
