import { loadStatements, type Query, type Row, type Statement, type Value } from '#store';
import type { MicroUsd } from '../prices/money.ts';

/** An archive that the database knows: its rows are dropped, or are being dropped. */
export interface RegisteredArchive {
  readonly number: number;
  readonly name: string;
  readonly folder: string;
  readonly bytes: number;
  readonly sha256: string;
  readonly content: string;
  /** Epoch milliseconds: from its first moment to before `endsAt`. */
  readonly beginsAt: number;
  readonly endsAt: number;
  /** Digests of rows of the database. */
  readonly closing: string;
  readonly spending: string;
  readonly transfers: string;
  readonly settled: number;
  readonly released: number;
  readonly expired: number;
  readonly charged: MicroUsd;
  readonly shortfall: MicroUsd;
  readonly operations: number;
  readonly madeAt: number;
  readonly droppedAt: number | null;
}

const SQL = loadStatements(import.meta.url, '../sql/archive.sql', ['registeredArchives', 'archivedUntil']);

/** The archives that the database knows, the oldest first. */
export async function registeredArchives(query: Query): Promise<readonly RegisteredArchive[]> {
  return (await query(SQL.registeredArchives)).map(toArchive);
}

/** The end of the newest archive in epoch milliseconds; 0 without one. Calls and movements before it are archived. */
export async function archivedUntil(query: Query): Promise<number> {
  const [row] = await query(SQL.archivedUntil);
  return Number(row!['until']);
}

const toArchive = (row: Row): RegisteredArchive => ({
  number: Number(row['number']),
  name: row['name'] as string,
  folder: row['folder'] as string,
  bytes: Number(row['bytes']),
  sha256: row['sha256'] as string,
  content: row['content'] as string,
  beginsAt: Number(row['begins_at']),
  endsAt: Number(row['ends_at']),
  closing: row['closing'] as string,
  spending: row['spending'] as string,
  transfers: row['transfers'] as string,
  settled: Number(row['settled']),
  released: Number(row['released']),
  expired: Number(row['expired']),
  charged: row['charged'] as bigint,
  shortfall: row['shortfall'] as bigint,
  operations: Number(row['operations']),
  madeAt: Number(row['made_at']),
  droppedAt: row['dropped_at'] === null ? null : Number(row['dropped_at']),
});

const PAGE = 1_000;

/** All rows of a statement whose last parameters are the key of the row before and the number of rows. */
export async function* pagesOf(
  query: Query,
  statement: Statement,
  {
    params,
    from,
    keyOf,
  }: {
    readonly params: readonly Value[];
    readonly from: readonly Value[];
    readonly keyOf: (row: Row) => readonly Value[];
  },
): AsyncGenerator<readonly Row[], void, undefined> {
  for (let key = from; ;) {
    const rows = await query(statement, [...params, ...key, PAGE]);
    if (rows.length > 0) yield rows;
    if (rows.length < PAGE) return;
    key = keyOf(rows.at(-1)!);
  }
}
