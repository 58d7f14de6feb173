import type { TaskOwner } from '#tasks';
import { listParam, loadStatements, rowReader, type Database } from '#store';

export interface StoredSession {
  readonly id: string;
  readonly account: string;
  /** As in TaskOwner, for the share of the account's parts. Not read back: the state says whose a session is. */
  readonly within?: string | null | undefined;
  /** The kind of session, named by the protocol. Ids are unique over all kinds. */
  readonly kind: string;
  /** The protocol's state, which it needs to continue the session. Only the protocol reads it. */
  readonly state: string;
  /** Epoch milliseconds. */
  readonly expiresAt: number;
}

/**
 * Sessions, stored in the database, so that every gateway of the database can continue them, also after a restart.
 * Methods reject with the database's error.
 */
export interface SessionStore {
  put(session: StoredSession): Promise<void>;
  /** null if there is no such session, or it has expired. */
  get(id: string): Promise<StoredSession | null>;
  /** When each of these expires; without those that are not there, or have expired. */
  expiriesOf(ids: readonly string[]): Promise<ReadonlyMap<string, number>>;
  /** Extends a session to `expiresAt`; a later expiry stays. False if the session has ended. */
  touch(id: string, expiresAt: number): Promise<boolean>;
  /** Changes only the state. False if the session has ended. */
  change(id: string, state: string): Promise<boolean>;
  /** False if the session had ended before. */
  delete(id: string): Promise<boolean>;
  /** The numbers of the owner's and of its account's sessions that have not expired. */
  countOf(owner: TaskOwner, kind: string): Promise<{ readonly own: number; readonly together: number }>;
  /**
   * Removes and returns the owner's session with the earliest expiry, if that is not after `expiresBy`; else null.
   */
  takeOldest(owner: TaskOwner, kind: string, expiresBy: number): Promise<StoredSession | null>;
  /** Removes expired sessions, at most `limit`. Each removed session is returned to exactly one caller. */
  sweep(kind: string, limit: number): Promise<readonly StoredSession[]>;
}

const SQL = loadStatements(import.meta.url, '../sessions/sql/sessions.sql', [
  'putSession',
  'findSession',
  'expiriesOfSessions',
  'touchSession',
  'changeSession',
  'deleteSession',
  'countSessions',
  'takeOldestSession',
  'sweepSessions',
]);

export function createSessionStore(database: Database, { now }: { readonly now: () => number }): SessionStore {
  return {
    async put({ id, account, within, kind, state, expiresAt }) {
      await database.query(SQL.putSession, [id, account, kind, state, expiresAt, within ?? null]);
    },
    async get(id) {
      const [row] = await database.query(SQL.findSession, [id, now()]);
      return row ? toSession(row) : null;
    },
    async expiriesOf(ids) {
      const rows = await database.query(SQL.expiriesOfSessions, [listParam(ids), now()]);
      return new Map(rows.map((row) => [row['id'] as string, Number(row['expires_at'])]));
    },
    touch: async (id, expiresAt) => (await database.query(SQL.touchSession, [id, expiresAt, now()])).length > 0,
    change: async (id, state) => (await database.query(SQL.changeSession, [id, state])).length > 0,
    delete: async (id) => (await database.query(SQL.deleteSession, [id])).length > 0,
    async countOf({ account, within }, kind) {
      const [row] = await database.query(SQL.countSessions, [account, kind, now(), within]);
      return { own: Number(row!['own']), together: Number(row!['together']) };
    },
    async takeOldest({ account, within }, kind, expiresBy) {
      const [row] = await database.query(SQL.takeOldestSession, [account, kind, expiresBy, within]);
      return row ? toSession(row) : null;
    },
    sweep: async (kind, limit) => (await database.query(SQL.sweepSessions, [kind, now(), limit])).map(toSession),
  };
}

const toSession = rowReader<StoredSession>({ expiresAt: Number });
