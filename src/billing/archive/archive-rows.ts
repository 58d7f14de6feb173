import { loadStatements, type Database, type OpenDatabase, type Statement } from '#store';
import type { ArchivePlan } from './archive-plan.ts';
import { readArchiveFile } from './archive-file.ts';
import { ArchiveError } from './archive-lines.ts';
import type { VerifiedArchive } from './verify-archive.ts';

/* The rows that the database gets of an archive, and the rows that it loses. All steps are small, and each can be
   the last before a kill: rows of a number that is not registered count for nothing, and rows that are in a
   registered archive count for nothing either until they are gone. */

const SQL = loadStatements(import.meta.url, '../sql/archive.sql', [
  'stageBalances',
  'stageMovements',
  'stageChains',
  'stageKept',
  'stageSpending',
  'stageIds',
  'stageCalls',
  'stageEarnings',
  'recordArchive',
  'unstageBalances',
  'unstageMovements',
  'unstageChains',
  'unstageKept',
  'unstageSpending',
  'unstageCalls',
  'unstageEarnings',
  'dropLocks',
  'firstGroup',
  'dropRows',
  'dropGroups',
  'emptyGroup',
  'noteDropped',
]);
const UNSTAGE = [
  SQL.unstageBalances,
  SQL.unstageMovements,
  SQL.unstageChains,
  SQL.unstageKept,
  SQL.unstageSpending,
  SQL.unstageCalls,
  SQL.unstageEarnings,
];

/** Rows of one step. It takes the thread of the embedded database a few milliseconds. */
const STEP_ROWS = 200;
const STEP_LOCKS = 100;
const STEP_GROUPS = 100;

export type Pace = () => Promise<void> | undefined;

/** Removes rows of archives that were not finished, and what only the archive before the newest needed. */
export async function removeUnneeded(database: Database, pace: Pace): Promise<void> {
  for (const statement of UNSTAGE) {
    while ((await database.query(statement, [STEP_ROWS])).length > 0) await pace();
  }
}

type RowFields = readonly (string | number | null)[];

/** Writes the rows of an archive, which count when it is registered. */
export async function stageArchive(database: Database, archive: VerifiedArchive, pace: Pace): Promise<void> {
  const { closing, leftovers, openCalls, ends, sums } = archive;
  const { number } = archive.header;
  const stage = async (statement: Statement, rows: readonly RowFields[]) => {
    for (let from = 0; from < rows.length; from += STEP_ROWS) {
      const step = rows.slice(from, from + STEP_ROWS).map((row) => [number, ...row]);
      await database.query(statement, [JSON.stringify(Object.fromEntries(step.entries()))]);
      await pace();
    }
  };
  await stage(
    SQL.stageBalances,
    closing.map(({ account, available, locked }) => [account, `${available}`, `${locked}`]),
  );
  await stage(
    SQL.stageMovements,
    leftovers.map(([chain, batch, position, movement, at]) => [chain, batch, position, ...movement, at]),
  );
  await stage(
    SQL.stageChains,
    ends.map(({ chain, n, hash, position }) => [chain, n, hash, position]),
  );
  await stage(
    SQL.stageKept,
    openCalls.map((id) => [id]),
  );
  await stage(SQL.stageSpending, sums.spending());
  await stage(SQL.stageIds, sums.ids());
  await stage(SQL.stageCalls, sums.idsOfAccounts());
  await stage(SQL.stageEarnings, sums.earnings());
}

/** Registers an archive: in one step its balances become those from which the books go on. */
export async function registerArchive(
  database: Database,
  { name, folder, now }: { readonly name: string; readonly folder: string; readonly now: number },
  archive: VerifiedArchive,
): Promise<void> {
  const { header, bytes, sha256, content, closingDigest, transfersDigest, sums, operations } = archive;
  await database.query(SQL.recordArchive, [
    header.number,
    name,
    folder,
    bytes,
    sha256,
    content,
    header.begins_at,
    header.ends_at,
    closingDigest,
    sums.spendingDigest(),
    transfersDigest,
    sums.settled,
    sums.released,
    sums.expired,
    sums.charged,
    sums.shortfall,
    operations,
    now,
  ]);
}

interface Dropped {
  readonly number: number;
  readonly path: string;
  readonly sha256: string;
  readonly endsAt: number;
  readonly ends: ArchivePlan['to'];
}

/**
 * Drops the rows that are in a registered archive. The calls are those that its file names, so that nothing is
 * dropped that is not in it: rejects with ArchiveError if the file is another one. It can be repeated.
 */
export async function dropArchived(
  database: OpenDatabase,
  { number, path, sha256, endsAt, ends }: Dropped,
  {
    now,
    pace,
    onCalls,
  }: { readonly now: () => number; readonly pace: Pace; readonly onCalls: (calls: number) => void },
): Promise<void> {
  const ids: string[] = [];
  const dropLocks = async () => {
    while (ids.length > 0) {
      const step = ids.splice(0, STEP_LOCKS);
      await database.query(SQL.dropLocks, [
        JSON.stringify(Object.fromEntries(step.map((id, index) => [index, [id]]))),
        endsAt,
      ]);
      onCalls(step.length);
      await pace();
    }
  };
  const read = await readArchiveFile(
    path,
    (line) => {
      if (line[0] === 'call') ids.push(line[1]['id'] as string);
    },
    () => (ids.length >= STEP_LOCKS ? dropLocks() : pace()),
  );
  await dropLocks();
  if (read.sha256 !== sha256) throw new ArchiveError(`${path} was changed while its rows were dropped`);
  for (const end of ends) await dropGroups(database, end, pace);
  const main = ends.find(({ position }) => position > 0);
  if (database.engine === 'sqlite' && main !== undefined) await database.dropLog(main.position);
  await removeUnneeded(database, pace);
  await database.query(SQL.noteDropped, [number, now()]);
}

/**
 * Drops groups of a chain up to `n`. On PostgreSQL the last one stays without its movements, because the gateway of the
 * chain, and `journal-head.json`, look for the end of the chain there.
 */
async function dropGroups(
  database: OpenDatabase,
  { chain, n }: { readonly chain: string; readonly n: number },
  pace: Pace,
): Promise<void> {
  const last = database.engine === 'postgres' ? n - 1 : n;
  const [first] = await database.query(SQL.firstGroup, [chain]);
  for (let at = Number(first?.['n'] ?? n) - 1; at < n; at += STEP_GROUPS) {
    const to = Math.min(at + STEP_GROUPS, n);
    await database.batch([
      { statement: SQL.dropRows, params: [chain, to] },
      { statement: SQL.dropGroups, params: [chain, Math.min(to, last)] },
      ...(to === n && last < n ? [{ statement: SQL.emptyGroup, params: [chain, n] }] : []),
    ]);
    await pace();
  }
}
