import { createSealedTexts, type SealSecret } from '#security';
import { loadStatements, type Database, type Row } from '#store';
import type { Caller } from './caller.ts';

/** A key of an account at one provider, as it is shown. The key itself is never shown. */
export interface ProviderKey {
  readonly provider: string;
  /** The base address that the key may be sent to. */
  readonly address: string;
  readonly lastFour: string;
  /** Epoch milliseconds. */
  readonly createdAt: number;
}

/** The keys of one account, to send to its providers. */
export interface OwnKeys {
  /** null if the account has no key for this provider at this address. */
  find(provider: string, address: string): string | null;
}

/** Keys that accounts have at providers of the operator's own file. Methods reject with the database's error. */
export interface ProviderKeys {
  /** Stores the key for these addresses of a provider, in place of earlier ones. */
  put(account: string, provider: string, addresses: readonly string[], key: string): Promise<void>;
  list(account: string): Promise<readonly ProviderKey[]>;
  delete(account: string, provider: string): Promise<boolean>;
  /**
   * The keys of an account; null if it has none. What other gateways change is seen after KNOWN_MS. Without a promise
   * if the keys are known.
   */
  keysOf(account: string): OwnKeys | null | Promise<OwnKeys | null>;
  /** Seals the keys anew that a former secret has sealed, or only counts them. Resolves with their number. */
  reseal(mode: 'write' | 'count'): Promise<number>;
}

/** How long keys are kept in memory, in milliseconds. So a call usually waits for no query. */
export const KNOWN_MS = 10_000;
const KNOWN_MAX = 10_000;

const SQL = loadStatements(import.meta.url, './sql/provider-keys.sql', [
  'putProviderKey',
  'listProviderKeys',
  'deleteProviderKeys',
  'listAllProviderKeys',
  'replaceSealedKey',
]);

interface ProviderKeysOptions {
  readonly database: Pick<Database, 'query' | 'batch'>;
  /** 32 bytes that all gateways of the database share. */
  readonly secret: SealSecret;
  readonly now: () => number;
}

interface CachedKeys {
  readonly until: number;
  readonly keys: OwnKeys | null | Promise<OwnKeys | null>;
}

/** The owner of a sealed key. It cannot be opened for another account, provider or address. */
const ownerOf = (account: string, provider: string, address: string): string =>
  JSON.stringify([account, provider, address]);

export function createProviderKeys({ database, secret, now }: ProviderKeysOptions): ProviderKeys {
  const texts = createSealedTexts(secret);
  const known = new Map<string, CachedKeys>();

  const rowsOf = (account: string): Promise<readonly Row[]> => database.query(SQL.listProviderKeys, [account]);

  const remember = (account: string, keys: CachedKeys['keys']): void => {
    known.delete(account);
    if (known.size >= KNOWN_MAX) known.delete(known.keys().next().value!);
    known.set(account, { until: now() + KNOWN_MS, keys });
  };

  async function read(account: string): Promise<OwnKeys | null> {
    const keys = new Map<string, string>();
    for (const row of await rowsOf(account)) {
      const [provider, address] = [row['provider'] as string, row['address'] as string];
      const key = texts.open(ownerOf(account, provider, address), row['sealed'] as string);
      if (key !== null) keys.set(`${provider} ${address}`, key);
    }
    if (keys.size === 0) return null;
    return { find: (provider, address) => keys.get(`${provider} ${address}`) ?? null };
  }

  return {
    async put(account, provider, addresses, key) {
      const at = now();
      await database.batch([
        { statement: SQL.deleteProviderKeys, params: [account, provider] },
        ...addresses.map((address) => ({
          statement: SQL.putProviderKey,
          params: [account, provider, address, texts.seal(ownerOf(account, provider, address), key), key.slice(-4), at],
        })),
      ]);
      known.delete(account);
    },

    async list(account) {
      return (await rowsOf(account)).map((row) => ({
        provider: row['provider'] as string,
        address: row['address'] as string,
        lastFour: row['last_four'] as string,
        createdAt: Number(row['created_at']),
      }));
    },

    async delete(account, provider) {
      const rows = await database.query(SQL.deleteProviderKeys, [account, provider]);
      known.delete(account);
      return rows.length > 0;
    },

    async reseal(mode) {
      let count = 0;
      for (const row of await database.query(SQL.listAllProviderKeys)) {
        const [account, provider, address, sealed] = ['account', 'provider', 'address', 'sealed'].map(
          (name) => row[name] as string,
        ) as [string, string, string, string];
        const anew = texts.reseal(ownerOf(account, provider, address), sealed);
        if (anew === null) continue;
        count +=
          mode === 'count'
            ? 1
            : (await database.query(SQL.replaceSealedKey, [account, provider, address, sealed, anew])).length;
      }
      return count;
    },

    keysOf(account) {
      const cached = known.get(account);
      if (cached !== undefined && cached.until > now()) return cached.keys;
      const reading: Promise<OwnKeys | null> = read(account).then(
        (keys) => {
          // A change in the meantime has removed the entry, and what was read may be of before it.
          if (known.get(account)?.keys === reading) remember(account, keys);
          return keys;
        },
        (error: unknown) => {
          if (known.get(account)?.keys === reading) known.delete(account);
          throw error;
        },
      );
      remember(account, reading);
      return reading;
    },
  };
}

/**
 * Whether a caller's calls may use the keys of its account. What a provider charges for a key is bounded by no lock and
 * no limit here. So a key with limits, a member, an access token and an agent that calls under a call may not use them.
 */
export const mayUseProviderKeys = ({ key, wallet, session, member, run, anonymous, paying }: Caller): boolean =>
  run === undefined &&
  member === undefined &&
  anonymous === undefined &&
  paying === undefined &&
  (key === null ? wallet !== null || session !== undefined : key.restricted === undefined);
