import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Entry } from '../../src/billing/ledger-log-rows.ts';
import { adHoc } from './ad-hoc.ts';
import type { OpenedEngine } from './engines.ts';

/** A record of the embedded ledger's log, to be changed. */
export interface EditableRecord {
  n: number;
  at: number;
  prev: string;
  hash: string;
  rows: Entry[];
}

export type LogEdit = (records: EditableRecord[]) => void;

/** The path of the only segment of a data directory's log. */
export function segmentOf(dataDir: string): string {
  const folder = join(dataDir, 'ledger');
  const [name, ...more] = readdirSync(folder);
  if (name === undefined || more.length > 0) throw new Error(`${folder} has ${more.length + 1} files instead of one`);
  return join(folder, name);
}

export function readLog(path: string): EditableRecord[] {
  const records: EditableRecord[] = [];
  for (let rest = readFileSync(path); rest.byteLength > 0;) {
    const begin = rest.indexOf('\n') + 1;
    const { bytes, ...header } = JSON.parse(rest.toString('utf8', 0, begin)) as EditableRecord & { bytes: number };
    records.push({ ...header, rows: JSON.parse(rest.toString('utf8', begin, begin + bytes)) as Entry[] });
    rest = rest.subarray(begin + bytes);
  }
  return records;
}

/**
 * What somebody with access to the data directory might do: changes records and what the tables know of the log's
 * length, and computes no hash anew.
 */
export async function editLog({ database, dataDir }: OpenedEngine, edit: LogEdit): Promise<void> {
  await database.query(adHoc('SELECT n FROM ledger_log'));
  const path = segmentOf(dataDir);
  const records = readLog(path);
  edit(records);
  const text = records
    .map(({ rows, n, at, prev, hash }) => {
      const payload = `[${rows.map((row) => JSON.stringify(row)).join(',\n')}]\n`;
      return `${JSON.stringify({ n, at, bytes: Buffer.byteLength(payload), prev, hash })}\n${payload}`;
    })
    .join('');
  writeFileSync(path, text);
  await database.query(adHoc(`UPDATE ledger_log SET position = ${Buffer.byteLength(text)}`));
}

/** Changes the rows of all records. */
export const editRows =
  (change: (row: Entry) => readonly Entry[]): LogEdit =>
  (records) => {
    for (const record of records) record.rows = record.rows.flatMap(change);
  };

const JOURNAL = /\bjournal(?:_batches)?\b/;

/**
 * Tampers with either engine: the journal is in tables on PostgreSQL, and in the log of the embedded database, where
 * `log` does the same as the statements.
 */
export async function tamper(
  engine: OpenedEngine,
  { statements, log }: { readonly statements: readonly string[]; readonly log?: LogEdit | undefined },
): Promise<void> {
  const isEmbedded = engine.database.engine === 'sqlite';
  const done = isEmbedded ? statements.filter((text) => !JOURNAL.test(text)) : statements;
  if (isEmbedded && done.length < statements.length) await editLog(engine, log!);
  await engine.database.batch(done.map((text) => ({ statement: adHoc(text) })));
}
