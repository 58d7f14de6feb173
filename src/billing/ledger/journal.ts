import { createHash, hash } from 'node:crypto';
import { GENESIS, loadStatements, type Database, type OpenDatabase, type Row, type SqliteDatabase } from '#store';
import type { JournalRow } from './ledger-changes.ts';

export interface ChainHead {
  readonly n: number;
  readonly hash: string;
}

/** The header of a batch of the journal. `count` is the number of its movements. */
export interface GroupHeader {
  readonly chain: string;
  readonly n: number;
  /** Epoch milliseconds. */
  readonly at: number;
  readonly count: number;
}

/**
 * The movements of a group as PostgreSQL stores them: a JSON array with one array of texts per movement. The texts are
 * in the order of JournalRow, without `at`. Only a settlement has `charged`, `fee`, `drawn` and `price`.
 */
export const movementsText = (rows: readonly JournalRow[]): string => JSON.stringify(rows.map(movement));

function movement({ kind, id, account, counterparty, amount, charged, fee, drawn, price }: JournalRow) {
  if (kind === 'settle')
    return [kind, id, account, counterparty, `${amount}`, `${charged}`, `${fee}`, `${drawn}`, price];
  return [kind, id, account, counterparty, `${amount}`];
}

/**
 * The hash of a group: sha256 over the hash of the previous group, the header of this group and its movements. A
 * changed, added or dropped movement breaks the chain from there on.
 */
export const hashGroup = (prev: string, { chain, n, at, count }: GroupHeader, movements: string): string =>
  hash('sha256', `${prev}\n${JSON.stringify([chain, n, at, count])}\n${movements}`);

const AMOUNT = /^\d{1,18}$/;

/** True for a text of movements that the audit can read. The text may have been changed by anyone. */
export function areMovements(text: string): boolean {
  try {
    return (JSON.parse(text) as readonly unknown[]).every(isMovement);
  } catch {
    return false;
  }
}

function isMovement(fields: unknown): boolean {
  if (!Array.isArray(fields) || fields.some((field) => typeof field === 'string' && field.includes('\0'))) return false;
  const [kind, id, account, counterparty, amount, charged = '0', fee = '0', drawn = '0', price = null] =
    fields as unknown[];
  return (
    [kind, id, account].every((field) => typeof field === 'string') &&
    [counterparty, price].every((field) => field === null || typeof field === 'string') &&
    [amount, charged, fee, drawn].every((field) => typeof field === 'string' && AMOUNT.test(field))
  );
}

/**
 * The hash of an old batch, whose movements are rows of a table: sha256 over the previous batch's hash and the
 * canonical text of this batch. The canonical text is one JSON array [chain, n, at] and one JSON array of texts per
 * row, each on a line.
 */
export function hashBatch(prev: string, chain: string, n: number, at: number, rows: readonly JournalRow[]): string {
  let text = `${prev}\n${JSON.stringify([chain, n, at])}`;
  for (const row of rows) {
    text += `\n${JSON.stringify([row.kind, row.id, row.account, row.counterparty, `${row.amount}`, `${row.charged}`, `${row.fee}`, `${row.drawn}`, row.price, row.at])}`;
  }
  return createHash('sha256').update(text).digest('hex');
}

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

const SQL = loadStatements(import.meta.url, '../sql/journal.sql', [
  'chainHead',
  'findBatch',
  'archivedEnds',
  'pgCommitDurably',
  'pgWriteSomething',
  'noteLogPosition',
  'logPosition',
]);
const FIND_RECORD = new URL('./find-record-program.ts', import.meta.url).href;

/** True for an embedded database that has books from before the log and no log record yet. */
export async function hasOldBooks(database: OpenDatabase): Promise<boolean> {
  if (database.engine !== 'sqlite') return false;
  const [row] = await database.query(SQL.logPosition);
  return row!['position'] === 0n && row!['n'] !== 0n;
}

/**
 * The current head of a chain, to be stored outside of the database. On the embedded database this also notes the head
 * in the tables.
 */
export async function journalHead(database: OpenDatabase, chain: string): Promise<JournalHead> {
  const [row] =
    database.engine === 'sqlite' ? await database.query(SQL.noteLogPosition) : await durableHead(database, chain);
  return row ? { chain, n: Number(row['n']), hash: row['hash'] as string } : { chain, n: 0, hash: GENESIS };
}

/**
 * The last group of a chain may be of locks, whose flush nobody has waited for. A crash of the server would lose it,
 * and the head outside of the database must never be newer than the database. So this transaction writes something, and
 * its commit flushes all before it.
 */
async function durableHead(database: Database, chain: string): Promise<readonly Row[]> {
  const [, rows] = await database.batch([
    { statement: SQL.pgCommitDurably },
    { statement: SQL.chainHead, params: [chain] },
    { statement: SQL.pgWriteSomething },
  ]);
  return rows!;
}

/** Checks whether the database still has the batch of `head`. */
export async function compareJournal(database: OpenDatabase, head: JournalHead): Promise<JournalState> {
  const { chain, n, hash } = head;
  if (n === 0) return { state: 'there' };
  const archived = (await database.query(SQL.archivedEnds)).find((row) => row['chain'] === chain);
  const last = Number(archived?.['n'] ?? 0n);
  // Of the archived groups the database has the hash of the last one.
  if (n <= last) return { state: n < last || archived!['hash'] === hash ? 'there' : 'other' };
  if (database.engine === 'sqlite') return compareLog(database, head);
  const [row] = await database.query(SQL.findBatch, [chain, n]);
  if (row) return { state: row['hash'] === hash ? 'there' : 'other' };
  return { state: 'behind', end: (await journalHead(database, chain)).n };
}

/**
 * Checking the log alone is not enough. The tables may be older than a complete log. They would be replayed, but would
 * still miss rows that are in no log, such as keys. So the tables must also know that this head was noted.
 */
async function compareLog(database: SqliteDatabase, { chain, n, hash }: JournalHead): Promise<JournalState> {
  const [row] = await database.query(SQL.logPosition);
  const noted = Number(row!['noted']);
  if (noted < n) return { state: 'behind', end: noted };
  if (Number(row!['n']) === n) return { state: row!['hash'] === hash ? 'there' : 'other' };
  const [batch] = await database.query(SQL.findBatch, [chain, n]);
  const stored = batch ? batch['hash'] : await database.program(FIND_RECORD, n);
  return { state: stored === hash ? 'there' : 'other' };
}
