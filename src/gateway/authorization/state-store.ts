import { hash } from 'node:crypto';
import { loadStatements, type Database, type Value } from '#store';

/** A row of the authorization server's state, without the id that it was found by. */
interface StateRow {
  readonly payload: Readonly<Record<string, unknown>>;
  readonly grantKey: string | null;
  readonly consumedAt: number | null;
  readonly expiresAt: number;
}

/**
 * The state of the authorization server in the database, so that any gateway answers the next request of a sign-in. Ids
 * are codes and tokens, and only their SHA-256 is stored. Times are epoch milliseconds. All methods reject with the
 * database's error.
 */
export interface StateStore {
  put(row: NewRow): Promise<void>;
  /** False if a row has the id already. */
  add(row: NewRow): Promise<boolean>;
  /** null for a row that has expired. */
  find(kind: string, id: string): Promise<StateRow | null>;
  /** Marks a code or a token as used, and keeps it until `until` at most. False if it was used before. */
  consume(kind: string, id: string, until: number): Promise<boolean>;
  delete(kind: string, id: string): Promise<void>;
  deleteOfGrant(kind: string, grantKey: string): Promise<void>;
  /** Stores a client that registered itself from a network. False if its network, or all together, have too many. */
  registerClient(id: string, payload: object, network: string): Promise<boolean>;
  /** Keeps a registered client until `until` at least, because somebody allowed it something. */
  keepClient(id: string, until: number): Promise<void>;
  /** Deletes at most `limit` expired rows. Resolves with their number. */
  sweep(limit?: number): Promise<number>;
}

interface NewRow {
  readonly kind: string;
  readonly id: string;
  readonly payload: object;
  readonly grantKey: string | null;
  readonly expiresAt: number;
}

/** A registration that nobody allowed anything ends after this time. */
const REGISTERED_MS = 24 * 60 * 60_000;
/** The most registrations that nobody allowed anything, of a network and of all. */
const REGISTERED_OF_NETWORK_MAX = 100;
const REGISTERED_MAX = 10_000;

const SQL = loadStatements(import.meta.url, './sql/state.sql', [
  'putState',
  'addState',
  'findState',
  'consumeState',
  'deleteState',
  'deleteStateOfGrant',
  'registerClient',
  'keepClient',
  'sweepState',
]);

export function createStateStore(database: Pick<Database, 'query'>, now: () => number): StateStore {
  const valuesOf = ({ kind, id, payload, grantKey, expiresAt }: NewRow): Value[] => [
    kind,
    digestOf(id),
    JSON.stringify(payload),
    grantKey,
    expiresAt,
  ];
  return {
    async put(row) {
      await database.query(SQL.putState, valuesOf(row));
    },
    async add(row) {
      return (await database.query(SQL.addState, valuesOf(row))).length > 0;
    },
    async find(kind, id) {
      const [row] = await database.query(SQL.findState, [kind, digestOf(id), now()]);
      if (!row) return null;
      const { payload, grant_key: grantKey, consumed_at: consumedAt, expires_at: expiresAt } = row;
      return {
        payload: JSON.parse(payload as string) as StateRow['payload'],
        grantKey: grantKey as string | null,
        consumedAt: consumedAt === null ? null : Number(consumedAt),
        expiresAt: Number(expiresAt),
      };
    },
    async consume(kind, id, until) {
      return (await database.query(SQL.consumeState, [kind, digestOf(id), now(), until])).length > 0;
    },
    async delete(kind, id) {
      await database.query(SQL.deleteState, [kind, digestOf(id)]);
    },
    async deleteOfGrant(kind, grantKey) {
      await database.query(SQL.deleteStateOfGrant, [kind, grantKey]);
    },
    async registerClient(id, payload, network) {
      const bounds = [REGISTERED_OF_NETWORK_MAX, REGISTERED_MAX];
      const params = [digestOf(id), JSON.stringify(payload), network, now() + REGISTERED_MS, ...bounds];
      return (await database.query(SQL.registerClient, params)).length > 0;
    },
    async keepClient(id, until) {
      await database.query(SQL.keepClient, [digestOf(id), until]);
    },
    async sweep(limit = 1_000) {
      return (await database.query(SQL.sweepState, [now(), limit])).length;
    },
  };
}

const digestOf = (id: string): string => hash('sha256', id);
