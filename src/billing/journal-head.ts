import { GENESIS, loadStatement, type Database } from '#store';

/**
 * How far a hash chain of the journal went when somebody looked: its batch `n` had this hash. `n` is 0 before the
 * first.
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

/** The head of a chain now. One look-up in an index. */
export async function journalHead(database: Pick<Database, 'query'>, chain: string): Promise<JournalHead> {
  const row = (await database.query(CHAIN_HEAD, [chain]))[0];
  return row ? { chain, n: Number(row['n']), hash: row['hash'] as string } : { chain, n: 0, hash: GENESIS };
}

/** Whether the journal still has what it had. */
export async function compareJournal(
  database: Pick<Database, 'query'>,
  { chain, n, hash }: JournalHead,
): Promise<JournalState> {
  if (n === 0) return { state: 'there' };
  const row = (await database.query(BATCH, [chain, n]))[0];
  if (row) return { state: row['hash'] === hash ? 'there' : 'other' };
  return { state: 'behind', end: (await journalHead(database, chain)).n };
}
