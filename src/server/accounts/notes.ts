import { randomUUID } from 'node:crypto';
import { loadStatements, type Database } from '#store';

/** A note of the operator's people about an account. Its owner does not see it. */
export interface AccountNote {
  readonly id: string;
  /** Epoch milliseconds. */
  readonly at: number;
  /** The label of the admin key, or the id of the administrator. */
  readonly administrator: string;
  readonly text: string;
}

export interface NoteStore {
  add(account: string, administrator: string, text: string): Promise<AccountNote>;
  /** The newest first. */
  list(account: string, page: { readonly offset: number; readonly limit: number }): Promise<readonly AccountNote[]>;
  /** False if the account has no such note. */
  delete(account: string, id: string): Promise<boolean>;
}

const SQL = loadStatements(import.meta.url, './sql/notes.sql', ['putNote', 'listNotes', 'deleteNote']);

export function createNoteStore(database: Pick<Database, 'query'>, { now }: { readonly now: () => number }): NoteStore {
  return {
    async add(account, administrator, text) {
      const note = { id: randomUUID(), at: now(), administrator, text };
      await database.query(SQL.putNote, [note.id, account, note.at, administrator, text]);
      return note;
    },
    async list(account, { offset, limit }) {
      return (await database.query(SQL.listNotes, [account, limit, offset])).map((row) => ({
        id: row['id'] as string,
        at: Number(row['at']),
        administrator: row['administrator'] as string,
        text: row['text'] as string,
      }));
    },
    delete: async (account, id) => (await database.query(SQL.deleteNote, [account, id])).length > 0,
  };
}
