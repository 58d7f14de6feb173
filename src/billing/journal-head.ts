import { GENESIS, loadStatement, type OpenDatabase, type SqliteDatabase } from '#store';

/**
 * How far a hash chain went when somebody looked: its batch `n` had this hash, on the embedded database its record.
 * `n` is 0 before the first.
 */
export interface JournalHead {
  readonly chain: string;
  readonly n: number;
  readonly hash: string;
}

/**
 * How much a database has of a head that was seen before: all of it (`there`), less (`behind`: its chain ends at
 * `end`), or another batch in its place (`other`): it was restored and written to since, or is another database.
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

/** True for an embedded database with books of before the log, whose log has not begun. */
export async function hasOldBooks(database: OpenDatabase): Promise<boolean> {
  if (database.engine !== 'sqlite') return false;
  const [row] = await database.query(POSITION);
  return row!['position'] === 0n && row!['n'] !== 0n;
}

/** The head of a chain now, to be kept outside of the database. */
export async function journalHead(database: OpenDatabase, chain: string): Promise<JournalHead> {
  const statement = database.engine === 'sqlite' ? NOTE : CHAIN_HEAD;
  const [row] = await database.query(statement, database.engine === 'sqlite' ? [] : [chain]);
  return row ? { chain, n: Number(row['n']), hash: row['hash'] as string } : { chain, n: 0, hash: GENESIS };
}

/** Whether the database still has what it had. */
export async function compareJournal(database: OpenDatabase, head: JournalHead): Promise<JournalState> {
  const { chain, n, hash } = head;
  if (n === 0) return { state: 'there' };
  if (database.engine === 'sqlite') return compareLog(database, head);
  const [row] = await database.query(BATCH, [chain, n]);
  if (row) return { state: row['hash'] === hash ? 'there' : 'other' };
  return { state: 'behind', end: (await journalHead(database, chain)).n };
}

/**
 * The log alone could be whole beside older tables: they are replayed, and would still miss what is in no log, such as
 * keys. So the tables must know as well that this head was noted.
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
