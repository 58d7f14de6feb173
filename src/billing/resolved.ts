import { loadStatements, readRecords, type Prepare, type Query } from '#store';
import type { JournalKind } from './ledger/ledger-changes.ts';
import { readArchivedPlace } from './archive/archived-place.ts';
import { EMBEDDED_CHAIN } from './ledger/ledger-sqlite.ts';

export { consumerOf } from './ledger/ledger.ts';
export { type CostLine, costLines } from './prices/price.ts';
export { ratesFromText } from './prices/price-book.ts';
export { usageFromText } from './prices/price-text.ts';

/* The locks that a part of the journal resolves, and the texts of their records, for programs in the thread of the
   database, which must not load the whole module. */

/** A position in a chain of the journal: after group `n`. */
export interface JournalPlace {
  readonly chain: string;
  readonly n: number;
  /** The end of the group in the log of the embedded ledger, in bytes; 0 if the group is a row of a table. */
  readonly position: number;
}

/** The locks that a part of the journal resolves. Over the whole journal, each lock occurs once. */
interface ResolvedIds {
  readonly ids: readonly string[];
  /** The positions at which this part ends, one for each chain that was read. */
  readonly places: readonly JournalPlace[];
  /** Number of groups that were read. */
  readonly groups: number;
  /** True if the journal continues after this part. */
  readonly hasMore: boolean;
}

const SQL = loadStatements(import.meta.url, './sql/journal.sql', [
  'logPosition',
  'chainHead',
  'journalResolved',
  'chainEnds',
  'groupsAfter',
  'archivedEnds',
]);

const RESOLVES: ReadonlySet<string> = new Set<JournalKind>(['settle', 'release', 'expire']);
/** Groups per query. A group has as many movements as arrived while the previous group was written. */
const GROUPS_PAGE = 100;

/**
 * Reads the embedded ledger, in the thread of its database: first its old journal, then its log up to the position that
 * the tables have reached. Continues after `from` (null: from the end of the newest archive, or the beginning) until
 * `most` locks are found.
 */
export function resolvedInLog(prepare: Prepare, folder: string, from: JournalPlace | null, most: number): ResolvedIds {
  const before = prepare(SQL.chainHead).get(EMBEDDED_CHAIN) as { n: bigint } | undefined;
  const beforeLog = Number(before?.n ?? 0n);
  const begin = from ?? { chain: EMBEDDED_CHAIN, ...(readArchivedPlace(prepare) ?? { n: 0, position: 0 }) };
  if (begin.n < beforeLog) return resolvedInRows(prepare, begin.n, beforeLog, most);
  const ids: string[] = [];
  let place: JournalPlace = begin;
  let groups = 0;
  const { position: end } = prepare(SQL.logPosition).get() as { position: bigint };
  if (Number(end) <= begin.position) return { ids, places: [], groups, hasMore: false };
  for (const record of readRecords(folder, { ...begin, hash: '' }, Number(end), true)) {
    addResolved(ids, record.payload);
    place = { chain: EMBEDDED_CHAIN, n: record.n, position: record.position };
    groups += 1;
    if (ids.length >= most) break;
  }
  return { ids, places: [place], groups, hasMore: place.position < Number(end) };
}

/** The beginning of a log entry that resolves a lock: its kind and its id. */
const RESOLUTION = /\["(?:settle|release|expire)",("(?:[^"\\]|\\.)*")/y;

/** Adds the locks that a record resolves. Each entry is one line, and only the beginning of the line is parsed. */
function addResolved(ids: string[], payload: string): void {
  for (let line = 1; line > 0; line = payload.indexOf('\n', line) + 1) {
    RESOLUTION.lastIndex = line;
    const id = RESOLUTION.exec(payload)?.[1];
    if (id !== undefined) ids.push(JSON.parse(id) as string);
  }
}

/** Reads the old journal of the embedded database, which has a row for each movement. */
function resolvedInRows(prepare: Prepare, from: number, end: number, most: number): ResolvedIds {
  const ids: string[] = [];
  let n = from;
  for (const row of prepare(SQL.journalResolved).iterate(EMBEDDED_CHAIN, from, end)) {
    const batch = Number(row['batch']);
    if (ids.length >= most && batch !== n)
      return { ids, places: [{ chain: EMBEDDED_CHAIN, n, position: 0 }], groups: n - from, hasMore: true };
    n = batch;
    ids.push(row['id'] as string);
  }
  return { ids, places: [{ chain: EMBEDDED_CHAIN, n: end, position: 0 }], groups: end - from, hasMore: true };
}

/**
 * Reads PostgreSQL: continues after `from` in every chain until `most` locks are found. What is in an archive is left
 * out.
 */
export async function resolvedInGroups(
  query: Query,
  from: ReadonlyMap<string, JournalPlace>,
  most: number,
): Promise<ResolvedIds> {
  const ids: string[] = [];
  const places: JournalPlace[] = [];
  let groups = 0;
  let hasMore = false;
  const archived = new Map((await query(SQL.archivedEnds)).map((row) => [row['chain'], Number(row['n'])]));
  for (const row of await query(SQL.chainEnds)) {
    const chain = row['chain'] as string;
    const end = Number(row['n']);
    let n = from.get(chain)?.n ?? archived.get(chain) ?? 0;
    if (n >= end) continue;
    while (n < end && ids.length < most) {
      const page = await query(SQL.groupsAfter, [chain, n, GROUPS_PAGE]);
      if (page.length === 0) break;
      const hasRows = page.some((group) => group['movements'] === null);
      const last = Number(page.at(-1)!['n']);
      if (hasRows) for (const { id } of await query(SQL.journalResolved, [chain, n, last])) ids.push(id as string);
      for (const { movements } of page) if (movements !== null) ids.push(...idsOf(movements as string));
      groups += page.length;
      n = last;
    }
    places.push({ chain, n, position: 0 });
    hasMore ||= n < end;
  }
  return { ids, places, groups, hasMore };
}

/** The ids in a text of movements. Invalid texts are skipped; the audit reports them. */
function idsOf(text: string): readonly string[] {
  let movements: unknown;
  try {
    movements = JSON.parse(text);
  } catch {
    return [];
  }
  if (!Array.isArray(movements)) return [];
  const ids: string[] = [];
  for (const movement of movements as readonly unknown[])
    if (Array.isArray(movement) && RESOLVES.has(movement[0] as string) && typeof movement[1] === 'string')
      ids.push(movement[1]);
  return ids;
}
