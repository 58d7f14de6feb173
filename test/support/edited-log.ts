import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { JournalRow } from '../../src/billing/ledger/ledger-changes.ts';
import { movementsText } from '../../src/billing/ledger/journal.ts';
import type { LedgerEntry } from '../../src/billing/ledger/ledger-log-rows.ts';
import { adHoc } from './ad-hoc.ts';
import type { OpenedEngine } from './engines.ts';

/** A record of the embedded ledger's log, which a test can change. */
export interface EditableRecord {
  n: number;
  at: number;
  prev: string;
  hash: string;
  rows: LedgerEntry[];
}

export type LogEdit = (records: EditableRecord[]) => void;

/** The path of the only segment of a data directory's log. */
export function segmentOf(dataDir: string): string {
  const folder = join(dataDir, 'ledger');
  const [name, ...more] = readdirSync(folder);
  if (name === undefined || more.length > 0) throw new Error(`${folder} has ${more.length + 1} files instead of one`);
  return join(folder, name);
}

/** Zeros behind the last record, as a ledger that is open has them, are left out. */
export function readLog(path: string): EditableRecord[] {
  const records: EditableRecord[] = [];
  for (let rest = readFileSync(path); rest.byteLength > 0 && rest[0] !== 0;) {
    const begin = rest.indexOf('\n') + 1;
    const { bytes, ...header } = JSON.parse(rest.toString('utf8', 0, begin)) as EditableRecord & { bytes: number };
    records.push({ ...header, rows: JSON.parse(rest.toString('utf8', begin, begin + bytes)) as LedgerEntry[] });
    rest = rest.subarray(begin + bytes);
  }
  return records;
}

/**
 * Simulates an attacker with access to the data directory: changes records and the log's length in the tables, but
 * computes no new hashes.
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
  (change: (row: LedgerEntry) => readonly LedgerEntry[]): LogEdit =>
  (records) => {
    for (const record of records) record.rows = record.rows.flatMap(change);
  };

const JOURNAL = /\bjournal(?:_batches)?\b/;

/**
 * Tampers with the journal of either engine. On PostgreSQL the journal is in tables, and `statements` change it. They
 * see the movements of the groups as rows of the table `journal`. In the embedded database it is in the log, and `log`
 * makes the same change.
 */
export async function tamper(
  engine: OpenedEngine,
  { statements, log }: { readonly statements: readonly string[]; readonly log?: LogEdit | undefined },
): Promise<void> {
  const { database } = engine;
  const isEmbedded = database.engine === 'sqlite';
  const touchesJournal = statements.some((text) => JOURNAL.test(text));
  const done = isEmbedded ? statements.filter((text) => !JOURNAL.test(text)) : statements;
  if (isEmbedded && touchesJournal) await editLog(engine, log!);
  if (!isEmbedded && touchesJournal) await unpack(database);
  await database.batch(done.map((text) => ({ statement: adHoc(text) })));
  if (!isEmbedded && touchesJournal) await pack(database);
}

/** Expands the movements of all groups into rows. */
async function unpack(database: OpenedEngine['database']): Promise<void> {
  await database.batch([
    {
      statement:
        adHoc(`INSERT INTO journal (chain, batch, position, at, kind, id, account, counterparty, amount, charged, fee, drawn, price)
        SELECT b.chain, b.n, r.position - 1, b.at, r.f ->> 0, r.f ->> 1, r.f ->> 2, r.f ->> 3, (r.f ->> 4)::bigint, COALESCE(r.f ->> 5, '0')::bigint,
          COALESCE(r.f ->> 6, '0')::bigint, COALESCE(r.f ->> 7, '0')::bigint, r.f ->> 8
        FROM journal_batches AS b CROSS JOIN LATERAL json_array_elements(b.movements::json) WITH ORDINALITY AS r (f, position)`),
    },
  ]);
}

/** Packs the rows into groups again. Rows whose group doesn't exist any more are left. */
async function pack(database: OpenedEngine['database']): Promise<void> {
  const rows = await database.query(adHoc('SELECT * FROM journal ORDER BY chain, batch, position'));
  for (const { chain, n } of await database.query(adHoc('SELECT chain, n FROM journal_batches'))) {
    const own = rows.filter((row) => row['chain'] === chain && row['batch'] === n);
    const text = movementsText(own as unknown as readonly JournalRow[]);
    const place = 'WHERE chain = $1 AND n = $2';
    await database.query(adHoc(`UPDATE journal_batches SET movements = $3 ${place}`), [chain!, n!, text]);
    if (own[0]) await database.query(adHoc(`UPDATE journal_batches SET at = $3 ${place}`), [chain!, n!, own[0]['at']!]);
    await database.query(adHoc('DELETE FROM journal WHERE chain = $1 AND batch = $2'), [chain!, n!]);
  }
}
