import { GENESIS, isIntact, loadStatements, type LogHead, type Query, type Row, type RunProgram } from '#store';
import { areMovements, hashBatch, hashGroup } from '../ledger/journal.ts';
import type { JournalRow } from '../ledger/ledger-changes.ts';
import { EMBEDDED_CHAIN } from '../ledger/ledger-sqlite.ts';
import { movementsOf, type MovementTexts, type TimedMovement } from '../ledger/log-movements.ts';
import type { AskedLog, ReadLog } from './archive-log-program.ts';
import { ArchiveError, type GroupForm } from './archive-lines.ts';
import { movementOfRow, type ChainEnd } from './closing-rows.ts';

/** A group of the journal, in whichever form its database has it. */
export interface JournalGroup {
  readonly form: GroupForm;
  readonly chain: string;
  readonly n: number;
  /** Epoch milliseconds. */
  readonly at: number;
  /** Number of its movements; 0 in the log, which does not count them. */
  readonly count: number;
  readonly hash: string;
  /** The text that is hashed. Of rows: a JSON array with a movement and its time each. */
  readonly payload: string;
}

const SQL = loadStatements(import.meta.url, '../sql/archive.sql', ['groupsBefore', 'groupsOfPeriod', 'rowsOfGroups']);
const JOURNAL_SQL = loadStatements(import.meta.url, '../sql/journal.sql', ['chainHead']);
const LOG_PROGRAM = new URL('./archive-log-program.ts', import.meta.url).href;

/** Groups, or bytes of the log, that are read at a time: about 50 calls. */
const PAGE = 50;
const PAGE_BYTES = 64 * 1024;

/**
 * The last group of each chain that was written before `until`. All groups up to it belong to the archive, also one
 * with a later time, which a clock that was set back leaves.
 */
export async function findEnds(
  query: Query,
  program: RunProgram | null,
  from: readonly ChainEnd[],
  until: number,
): Promise<readonly ChainEnd[]> {
  const ends = new Map(from.map((end) => [end.chain, end]));
  for (const row of await query(SQL.groupsBefore, [until])) {
    const end = { chain: row['chain'] as string, n: Number(row['n']), hash: row['hash'] as string, position: 0 };
    if (end.n > (ends.get(end.chain)?.n ?? 0)) ends.set(end.chain, end);
  }
  if (program !== null) {
    let place = await startOfLog(query, from);
    for (let isEnd = false; !isEnd;) {
      const request: AskedLog = { from: place, until };
      const read = (await program(LOG_PROGRAM, request)) as ReadLog;
      if (read.head !== null) ends.set(EMBEDDED_CHAIN, { chain: EMBEDDED_CHAIN, ...read.head });
      ({ place, isEnd } = read);
    }
  }
  return [...ends.values()];
}

/** The beginning of the log, or of its part after the newest archive. */
async function startOfLog(query: Query, from: readonly ChainEnd[]): Promise<LogHead> {
  const [head] = await query(JOURNAL_SQL.chainHead, [EMBEDDED_CHAIN]);
  const archived = from.find(({ chain }) => chain === EMBEDDED_CHAIN);
  const n = Number(head?.['n'] ?? 0n);
  if (archived !== undefined && archived.n >= n) return archived;
  return { n, hash: (head?.['hash'] as string | undefined) ?? GENESIS, position: 0 };
}

/** The groups of all chains after `from` up to `to`, in pages. */
export async function* groupsBetween(
  query: Query,
  program: RunProgram | null,
  from: readonly ChainEnd[],
  to: readonly ChainEnd[],
): AsyncGenerator<readonly JournalGroup[], void, undefined> {
  for (const end of to) {
    const begin = from.find(({ chain }) => chain === end.chain)?.n ?? 0;
    yield* storedGroups(query, end, begin);
    if (program === null || end.position === 0) continue;
    for (let place = await startOfLog(query, from); place.position < end.position;) {
      const request: AskedLog = { from: place, to: end.position, bytes: PAGE_BYTES };
      const read = (await program(LOG_PROGRAM, request)) as ReadLog;
      ({ place } = read);
      yield read.records.map(({ n, at, hash, payload }) => ({
        form: 'log',
        chain: end.chain,
        n,
        at,
        count: 0,
        hash,
        payload,
      }));
    }
  }
}

async function* storedGroups(
  query: Query,
  { chain, n: last }: ChainEnd,
  from: number,
): AsyncGenerator<readonly JournalGroup[]> {
  for (let n = from; n < last;) {
    const page = await query(SQL.groupsOfPeriod, [chain, n, last, PAGE]);
    if (page.length === 0) return;
    const hasRows = page.some(({ movements }) => movements === null);
    const rows = hasRows ? await query(SQL.rowsOfGroups, [chain, page[0]!['n']!, page.at(-1)!['n']!]) : [];
    const byGroup = Map.groupBy(rows, ({ batch }) => batch);
    yield page.map((row) => groupOf(chain, row, byGroup.get(row['n']) ?? []));
    n = Number(page.at(-1)!['n']);
  }
}

function groupOf(chain: string, row: Row, rows: readonly Row[]): JournalGroup {
  const movements = row['movements'] as string | null;
  return {
    form: movements === null ? 'rows' : 'group',
    chain,
    n: Number(row['n']),
    at: Number(row['at']),
    count: Number(row['count']),
    hash: row['hash'] as string,
    payload: movements ?? JSON.stringify(rows.map((each) => [movementOfRow(each), Number(each['at'])])),
  };
}

/** The movements of a group with their times. Throws ArchiveError if they cannot be read. */
export function movementsOfGroup({
  form,
  chain,
  n,
  at,
  payload,
}: JournalGroup): readonly (readonly [MovementTexts, number])[] {
  const wrong = () => new ArchiveError(`chain ${chain}, group ${n}: its movements cannot be read`);
  if (form === 'log') {
    const movements = movementsOf(payload);
    if (movements === null) throw wrong();
    return movements.map(({ movement, at: own }: TimedMovement) => [movement, own ?? at]);
  }
  if (form === 'rows') return rowsOf(payload) ?? refuse(wrong());
  if (!areMovements(payload)) throw wrong();
  return (JSON.parse(payload) as readonly string[][]).map((fields) => [wholeMovement(fields), at]);
}

function refuse(error: Error): never {
  throw error;
}

const wholeMovement = (fields: readonly (string | null)[]): MovementTexts => {
  const [kind, id, account, counterparty, amount, charged = '0', fee = '0', drawn = '0', price = null] = fields;
  return [kind, id, account, counterparty, amount, charged, fee, drawn, price] as MovementTexts;
};

/** Movements of old groups; null if the text is something else. */
function rowsOf(payload: string): readonly (readonly [MovementTexts, number])[] | null {
  try {
    const rows = JSON.parse(payload) as readonly (readonly [MovementTexts, number])[];
    const isWhole = rows.every(
      ([movement, at]) => areMovements(JSON.stringify([movement])) && Number.isSafeInteger(at),
    );
    return isWhole ? rows : null;
  } catch {
    return null;
  }
}

/** Whether a group has its hash, and follows the group with the hash `prev`. */
export function isRightGroup(group: JournalGroup, prev: string): boolean {
  const { form, chain, n, at, count, hash, payload } = group;
  if (form === 'log') return isIntact({ n, at, prev, hash, payload, position: 0 });
  if (form === 'group') return hashGroup(prev, { chain, n, at, count }, payload) === hash;
  const rows = (rowsOf(payload) ?? []).map(([movement, time]) => journalRow(movement, time));
  return rows.length === count && hashBatch(prev, chain, n, at, rows) === hash;
}

const journalRow = (
  [kind, id, account, counterparty, amount, charged, fee, drawn, price]: MovementTexts,
  at: number,
): JournalRow => ({
  kind,
  id,
  account,
  counterparty,
  amount: BigInt(amount),
  charged: BigInt(charged),
  fee: BigInt(fee),
  drawn: BigInt(drawn),
  price,
  at,
});
