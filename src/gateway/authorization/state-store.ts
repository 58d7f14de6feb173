import { hash } from 'node:crypto';
import { inTurn } from '#accounts';
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
  /**
   * Stores what a stranger at a place begins, and nobody has agreed to yet: a client that registers itself, a sign-in.
   * False if the place, or all together, have too many of this kind.
   */
  begin(row: NewRow, place: string): Promise<boolean>;
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

/** The most of one kind that strangers have begun and nobody agreed to, of a place and of all. */
const BEGUN_OF_PLACE_MAX = 500;
const BEGUN_MAX = 10_000;

const SQL = loadStatements(import.meta.url, './sql/state.sql', [
  'putState',
  'addState',
  'findState',
  'consumeState',
  'deleteState',
  'deleteStateOfGrant',
  'beginState',
  'keepClient',
  'sweepState',
]);

export function createStateStore(database: Pick<Database, 'query' | 'batch'>, now: () => number): StateStore {
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
    async begin({ kind, id, payload, expiresAt }, place) {
      const bounds = [now(), BEGUN_OF_PLACE_MAX, BEGUN_MAX];
      const params = [kind, digestOf(id), JSON.stringify(payload), place, expiresAt, ...bounds];
      const insert = { statement: SQL.beginState, params };
      return (await inTurn(database, `authorization ${kind}`, [insert])).length > 0;
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
