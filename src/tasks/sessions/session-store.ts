import { loadStatement, rowReader, type Database } from '#store';

/** A session of a protocol, as it is kept. */
export interface StoredSession {
  readonly id: string;
  /** Ledger account of who opened it. */
  readonly account: string;
  /** The protocol's word for its sessions; ids are unique over all of them. */
  readonly kind: string;
  /** The protocol's own state, which it needs to go on with the session. Nobody else reads it. */
  readonly state: string;
  /** Epoch milliseconds. */
  readonly expiresAt: number;
}

/**
 * Sessions in the database, so that every gateway that shares it can go on with one, also after a restart. Rejects
 * with the database's error.
 */
export interface SessionStore {
  put(session: StoredSession): Promise<void>;
  /** null for one that is not there, or whose time is over. */
  get(id: string): Promise<StoredSession | null>;
  /** Makes it last until `expiresAt`, or longer where somebody said so before. False when it has ended. */
  touch(id: string, expiresAt: number): Promise<boolean>;
  /** Changes its state alone. False when it has ended. */
  change(id: string, state: string): Promise<boolean>;
  /** False when it had ended before. */
  delete(id: string): Promise<boolean>;
  /** Those of an account whose time is not over. */
  countOf(account: string, kind: string): Promise<number>;
  /** Removes the account's session that ends first, if it ends no later than `expiresBy`; else null. */
  takeOldest(account: string, kind: string, expiresBy: number): Promise<StoredSession | null>;
  /** Removes those whose time is over, at most `limit`, and gives them to the one caller that removed them. */
  sweep(kind: string, limit: number): Promise<readonly StoredSession[]>;
}

const PUT = loadStatement(import.meta.url, './sql/put-session.sql');
const FIND = loadStatement(import.meta.url, './sql/find-session.sql');
const TOUCH = loadStatement(import.meta.url, './sql/touch-session.sql');
const CHANGE = loadStatement(import.meta.url, './sql/change-session.sql');
const DELETE = loadStatement(import.meta.url, './sql/delete-session.sql');
const COUNT = loadStatement(import.meta.url, './sql/count-sessions.sql');
const TAKE_OLDEST = loadStatement(import.meta.url, './sql/take-oldest-session.sql');
const SWEEP = loadStatement(import.meta.url, './sql/sweep-sessions.sql');

export function createSessionStore(database: Database, { now }: { readonly now: () => number }): SessionStore {
  return {
    async put({ id, account, kind, state, expiresAt }) {
      await database.query(PUT, [id, account, kind, state, expiresAt]);
    },
    async get(id) {
      const [row] = await database.query(FIND, [id, now()]);
      return row ? toSession(row) : null;
    },
    touch: async (id, expiresAt) => (await database.query(TOUCH, [id, expiresAt, now()])).length > 0,
    change: async (id, state) => (await database.query(CHANGE, [id, state])).length > 0,
    delete: async (id) => (await database.query(DELETE, [id])).length > 0,
    async countOf(account, kind) {
      const [row] = await database.query(COUNT, [account, kind, now()]);
      return Number(row!['sessions']);
    },
    async takeOldest(account, kind, expiresBy) {
      const [row] = await database.query(TAKE_OLDEST, [account, kind, expiresBy]);
      return row ? toSession(row) : null;
    },
    sweep: async (kind, limit) => (await database.query(SWEEP, [kind, now(), limit])).map(toSession),
  };
}

const toSession = rowReader<StoredSession>({ expiresAt: Number });
