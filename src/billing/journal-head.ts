import { GENESIS, loadStatement, type OpenDatabase, type SqliteDatabase } from '#store';

/**
 * The last batch of a hash chain at some moment: its number and its hash. On the embedded database it is a record of
 * the log. `n` is 0 before the first batch.
 */
export interface JournalHead {
  readonly chain: string;
  readonly n: number;
  readonly hash: string;
}

/**
 * Compares a database with a head that was noted earlier. `there`: the database has that batch. `behind`: its chain
 * ends earlier, at `end`. `other`: it has a different batch in that place, because it was restored and then written to,
 * or because it is another database.
 */
type JournalState =
  | { readonly state: 'there' }
  | { readonly state: 'behind'; readonly end: number }
  | { readonly state: 'other' };

const CHAIN_HEAD = loadStatement(import.meta.url, './sql/chain-head.sql');
const BATCH = loadStatement(import.meta.url, './sql/find-batch.sql');
const NOTE = loadStatement(import.meta.url, './sql/note-log-position.sql');
const POSITION = loadStatement(import.meta.url, './sql/log-position.sql');
const FIND_RECORD = new URL('./find-record-program.ts', import.meta.url).href;

/** True for an embedded database that has books from before the log and no log record yet. */
export async function hasOldBooks(database: OpenDatabase): Promise<boolean> {
  if (database.engine !== 'sqlite') return false;
  const [row] = await database.query(POSITION);
  return row!['position'] === 0n && row!['n'] !== 0n;
}

/**
 * The current head of a chain, to be stored outside of the database. On the embedded database this also notes the head
 * in the tables.
 */
export async function journalHead(database: OpenDatabase, chain: string): Promise<JournalHead> {
  const statement = database.engine === 'sqlite' ? NOTE : CHAIN_HEAD;
  const [row] = await database.query(statement, database.engine === 'sqlite' ? [] : [chain]);
  return row ? { chain, n: Number(row['n']), hash: row['hash'] as string } : { chain, n: 0, hash: GENESIS };
}

/** Checks whether the database still has the batch of `head`. */
export async function compareJournal(database: OpenDatabase, head: JournalHead): Promise<JournalState> {
  const { chain, n, hash } = head;
  if (n === 0) return { state: 'there' };
  if (database.engine === 'sqlite') return compareLog(database, head);
  const [row] = await database.query(BATCH, [chain, n]);
  if (row) return { state: row['hash'] === hash ? 'there' : 'other' };
  return { state: 'behind', end: (await journalHead(database, chain)).n };
}

/**
 * Checking the log alone is not enough. The tables may be older than a complete log. They would be replayed, but would
 * still miss rows that are in no log, such as keys. So the tables must also know that this head was noted.
 */
async function compareLog(database: SqliteDatabase, { chain, n, hash }: JournalHead): Promise<JournalState> {
  const [row] = await database.query(POSITION);
  const noted = Number(row!['noted']);
  if (noted < n) return { state: 'behind', end: noted };
  if (Number(row!['n']) === n) return { state: row!['hash'] === hash ? 'there' : 'other' };
  const [batch] = await database.query(BATCH, [chain, n]);
  const found = batch ? batch['hash'] : await database.program(FIND_RECORD, n);
  return { state: found === hash ? 'there' : 'other' };
}
