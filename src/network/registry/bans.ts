import { loadStatement, type Database } from '#store';

/** A provider that may not sell. */
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

const BUMP = {
  sqlite: loadStatement(import.meta.url, './sql/bump-clock.sql'),
  postgres: loadStatement(import.meta.url, './sql/pg-bump-clock.sql'),
};
const PUT = loadStatement(import.meta.url, './sql/put-ban.sql');
const DELETE = loadStatement(import.meta.url, './sql/delete-ban.sql');
const LIST = loadStatement(import.meta.url, './sql/list-bans.sql');

export function createBanStore(
  database: Pick<Database, 'query' | 'batch' | 'engine'>,
  { now }: { readonly now: () => number },
): BanStore {
  const bump = { statement: BUMP[database.engine] };
  return {
    async put(provider, reason) {
      const [, rows] = await database.batch([bump, { statement: PUT, params: [provider, reason, now()] }]);
      return toBan(rows![0]!);
    },
    async remove(provider) {
      const [, rows] = await database.batch([bump, { statement: DELETE, params: [provider] }]);
      return rows!.length > 0;
    },
    list: async () => (await database.query(LIST)).map(toBan),
  };
}

const toBan = (row: Readonly<Record<string, unknown>>): Ban => ({
  provider: row['provider'] as string,
  reason: row['reason'] as string,
  at: Number(row['at']),
});

/** The bans in memory, as this gateway last read them. */
export interface Bans {
  of(provider: string): Ban | null;
  /** Reads the bans again. Rejects with the database's error, and the last known ones stay in force. */
  load(): Promise<void>;
}

/** `onBanned` gets each provider that was not banned at the last read. */
export function createBans(store: Pick<BanStore, 'list'>, onBanned: (provider: string) => void): Bans {
  let bans: ReadonlyMap<string, Ban> = new Map();
  return {
    of: (provider) => bans.get(provider) ?? null,
    async load() {
      const before = bans;
      bans = new Map((await store.list()).map((ban) => [ban.provider, ban]));
      for (const provider of bans.keys()) if (!before.has(provider)) onBanned(provider);
    },
  };
}
