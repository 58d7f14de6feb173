import { loadStatements, type LogHead, type LogRecord, type Prepare, readRecords } from '#store';

/**
 * Reads the log of the embedded ledger from a place: `until` finds the last record before a time, `to` reads up to a
 * place.
 */
export type AskedLog = { readonly from: LogHead } & (
  | { readonly until: number }
  | { readonly to: number; readonly bytes: number }
);

export interface ReadLog {
  /** With `to`: the records, at least one before the end. */
  readonly records: readonly LogRecord[];
  /** With `until`: the last record that was written before that time, of those that were looked at. */
  readonly head: LogHead | null;
  readonly place: LogHead;
  readonly isEnd: boolean;
}

const SQL = loadStatements(import.meta.url, '../sql/journal.sql', ['logPosition']);
/** Bytes of the log that one search looks at. */
const SEARCH_BYTES = 32 * 1024 * 1024;

/**
 * The reading that the last call began, which the next one continues: a compressed file of the log is read as a
 * whole, and should be read once.
 */
let reading: {
  readonly folder: string;
  readonly to: number;
  position: number;
  readonly records: Iterator<LogRecord>;
} | null = null;

export function run(prepare: Prepare, args: unknown, folder: string): ReadLog {
  const request = args as AskedLog;
  const end = Number((prepare(SQL.logPosition).get() as { position: bigint }).position);
  const to = 'to' in request ? request.to : end;
  const most = 'to' in request ? request.bytes : SEARCH_BYTES;
  if (reading === null || reading.folder !== folder || reading.to !== to || reading.position !== request.from.position)
    reading = { folder, to, position: request.from.position, records: readRecords(folder, request.from, to, true) };
  const records: LogRecord[] = [];
  let head: LogHead | null = null;
  let place = request.from;
  while (place.position < to && place.position - request.from.position < most) {
    const { value: record } = reading.records.next() as { value: LogRecord };
    place = { position: record.position, n: record.n, hash: record.hash };
    reading.position = record.position;
    if ('to' in request) records.push(record);
    else if (record.at < request.until) head = place;
  }
  const isEnd = place.position >= to;
  if (isEnd) reading = null;
  return { records, head, place, isEnd };
}
