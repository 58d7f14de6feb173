import { randomBytes } from 'node:crypto';
import { loadStatement, type Database } from '#store';

/** A change that an administrator made, or was refused. */
export interface AdminAct {
  /** Sorts by time. */
  readonly id: string;
  /** Epoch milliseconds. */
  readonly at: number;
  /** Id of the key; `root`, or `command` for a command on the database. */
  readonly actor: string;
  /** Label of the key; null for the last two. */
  readonly label: string | null;
  readonly address: string;
  readonly method: string;
  readonly path: string;
  /** JSON of the body, shortened, without secrets; null without one. */
  readonly body: string | null;
  /** HTTP status of the answer; null where the gateway ended before it. */
  readonly status: number | null;
}

export interface AdminLog {
  /** On the disk when it resolves, with the act's id. */
  note(act: Omit<AdminAct, 'id' | 'at' | 'label'>): Promise<string>;
  end(id: string, status: number): Promise<void>;
  /** The newest first, before the act `before` where it is given. */
  list(page: { readonly before: string | null; readonly limit: number }): Promise<readonly AdminAct[]>;
}

const NOTE = loadStatement(import.meta.url, './sql/note-act.sql');
const END = loadStatement(import.meta.url, './sql/end-act.sql');
const LIST = loadStatement(import.meta.url, './sql/list-acts.sql');
/** Twelve hex digits of milliseconds last until the year 10,889. */
const TIME_DIGITS = 12;
/** Comes after every id. */
const AFTER_ALL = 'g';

export function createAdminLog(database: Pick<Database, 'query'>, { now }: { readonly now: () => number }): AdminLog {
  return {
    async note({ actor, address, method, path, body, status }) {
      const at = now();
      const id = `${at.toString(16).padStart(TIME_DIGITS, '0')}${randomBytes(6).toString('hex')}`;
      await database.query(NOTE, [id, at, actor, address, method, path, body, status]);
      return id;
    },
    async end(id, status) {
      await database.query(END, [id, status]);
    },
    async list({ before, limit }) {
      const rows = await database.query(LIST, [before ?? AFTER_ALL, limit]);
      return rows.map((row) => ({
        id: row['id'] as string,
        at: Number(row['at']),
        actor: row['actor'] as string,
        label: (row['label'] as string | null) ?? null,
        address: row['address'] as string,
        method: row['method'] as string,
        path: row['path'] as string,
        body: row['body'] as string | null,
        status: row['status'] === null ? null : Number(row['status']),
      }));
    },
  };
}
