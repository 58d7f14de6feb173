import { existsSync } from 'node:fs';
import { mkdir, open, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises';
import { loadStatements, type OpenDatabase } from '#store';
import type { LockRecord } from '../ledger/ledger.ts';
import type { Receipt, ReceiptSigner } from '../receipt.ts';
import { archiveContent } from './archive-content.ts';
import { digestOfFile, writeArchiveFile } from './archive-file.ts';
import { ArchiveError } from './archive-lines.ts';
import { groupsOf, planArchive, refuseTime, type ArchivePlan, type IsCounted } from './archive-plan.ts';
import { dropArchived, type Pace, registerArchive, removeUnneeded, stageArchive } from './archive-rows.ts';
import { closingChains } from './closing-rows.ts';
import { findFile } from './audit-archives.ts';
import { registeredArchives, type RegisteredArchive } from './registered.ts';
import { verifyArchive, type VerifiedArchive } from './verify-archive.ts';

/** The progress of a run. `done` and `total` count groups of the journal, or calls while rows are dropped. */
interface ArchiveProgress {
  readonly phase: 'finding' | 'writing' | 'verifying' | 'registering' | 'dropping';
  readonly done: number;
  readonly total: number;
}

export interface ArchiveOptions {
  readonly database: OpenDatabase;
  /** Archives everything before this time in epoch milliseconds, the beginning of a UTC day. */
  readonly endsAt: number;
  readonly folder: string;
  /** Further folders in which the file of an archive whose rows are not all dropped is looked for. */
  readonly folders: readonly string[];
  /** The newest days, which cannot be archived: at least RECENT_DAYS. */
  readonly recentDays: number;
  /** Only finds out what would be archived. */
  readonly dryRun: boolean;
  /** Writes and verifies the file, and drops nothing. */
  readonly keep: boolean;
  readonly signer: ReceiptSigner;
  readonly receiptOf: (record: LockRecord) => Receipt | null;
  readonly isCounted: IsCounted;
  readonly now: () => number;
  readonly onProgress?: (progress: ArchiveProgress) => void;
  /** It rests for so many times as long as it has worked, so that calls come first. */
  readonly restTimes?: number;
  /** Ends the run between two steps, with ArchiveError. */
  readonly signal?: AbortSignal;
}

export interface ArchiveRun {
  readonly state: 'planned' | 'kept' | 'archived';
  readonly name: string;
  readonly path: string;
  readonly endsAt: number;
  readonly groups: number;
  /** null for a plan. */
  readonly archive: VerifiedArchive | null;
}

const SQL = loadStatements(import.meta.url, '../sql/archive.sql', ['pgHoldArchives']);

/** It works for so many milliseconds before it lets others. */
const WORK_MS = 2;
/** The suffix of a file that is not verified yet. */
const DRAFT = '.part';

/**
 * Archives a part of the books: writes the file, reads it back and verifies it, registers it, and only then drops the
 * rows that are in it. A run that was killed at any step can be repeated, and gives the same file. First it finishes
 * what another run has left. Rejects with ArchiveError if it cannot be done, and then nothing is dropped.
 */
export function archivePeriod(options: ArchiveOptions): Promise<ArchiveRun> {
  return alone(options.database, async () => {
    const { database, endsAt, now } = options;
    refuseTime(endsAt, { now: now(), recentDays: options.recentDays, newest: null });
    if (options.dryRun) return planned(options);
    if ((await finish(options)) !== null) {
      const finished = (await registeredArchives(database.query)).at(-1)!;
      if (finished.endsAt === endsAt) return finishedRun(options, finished);
    }
    await removeUnneeded(database, paceOf(options));
    const run = await write(options);
    if (options.keep) return run;
    const { archive, path, name } = run;
    const step = { phase: 'registering', done: 0, total: 1 } as const;
    options.onProgress?.(step);
    await stageArchive(database, archive, paceOf(options));
    await registerArchive(database, { name, folder: options.folder, now: now() }, archive);
    await drop(options, path, (await registeredArchives(database.query)).at(-1)!);
    return { ...run, state: 'archived' };
  });
}

/** The result of a run that only had to finish what another one has begun. */
async function finishedRun(
  { folders }: ArchiveOptions,
  { name, folder, endsAt }: RegisteredArchive,
): Promise<ArchiveRun> {
  const path = [folder, ...folders].map((each) => join(each, name)).find(existsSync)!;
  const archive = await verifyArchive(path);
  return { state: 'archived', name, path, endsAt, groups: archive.groups, archive };
}

type FinishOptions = Pick<ArchiveOptions, 'database' | 'folders' | 'now' | 'onProgress' | 'restTimes' | 'signal'>;

/** Drops what is left of an archive whose run was killed. Resolves with its name; null if there was nothing to do. */
export function finishArchive(options: FinishOptions): Promise<string | null> {
  return alone(options.database, () => finish(options));
}

async function finish(options: FinishOptions): Promise<string | null> {
  const newest = (await registeredArchives(options.database.query)).at(-1);
  if (newest === undefined || newest.droppedAt !== null) return null;
  const file = await findFile(newest, options.folders);
  if (file?.sha256 !== newest.sha256)
    throw new ArchiveError(
      `${newest.name} is registered, and its rows are not all dropped yet. ${file === null ? `Put the file back into ${newest.folder}` : `${file.path} is another file: put the right one there`}, then go on`,
    );
  await drop(options, file.path, newest);
  return newest.name;
}

async function drop(options: FinishOptions, path: string, archive: RegisteredArchive): Promise<void> {
  const { database, now, onProgress } = options;
  const { number, sha256, endsAt } = archive;
  const total = archive.settled + archive.released + archive.expired;
  let done = 0;
  const onCalls = (calls: number) => onProgress?.({ phase: 'dropping', done: (done += calls), total });
  onCalls(0);
  const ends = await closingChains(database.query, number);
  await dropArchived(database, { number, path, sha256, endsAt, ends }, { now, pace: paceOf(options), onCalls });
}

const planOptions = ({ endsAt, now, recentDays, isCounted }: ArchiveOptions) => ({
  endsAt,
  now: now(),
  recentDays,
  isCounted,
});

function planned(options: ArchiveOptions): Promise<ArchiveRun> {
  options.onProgress?.({ phase: 'finding', done: 0, total: 1 });
  return options.database.snapshot(null, async (query, program) => {
    const plan = await planArchive(query, program, planOptions(options));
    return { state: 'planned', ...placeOf(options, plan), archive: null };
  });
}

const placeOf = ({ folder, endsAt }: ArchiveOptions, plan: ArchivePlan) => ({
  name: plan.name,
  path: join(folder, plan.name),
  endsAt,
  groups: groupsOf(plan),
});

/** Writes the file of an archive beside its name, verifies it, and gives it its name. */
async function write(options: ArchiveOptions): Promise<ArchiveRun & { readonly archive: VerifiedArchive }> {
  const { database, folder, signer, receiptOf, onProgress } = options;
  const pace = paceOf(options);
  onProgress?.({ phase: 'finding', done: 0, total: 1 });
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const { plan, written } = await database.snapshot(null, async (query, program) => {
    const plan = await planArchive(query, program, planOptions(options));
    const total = groupsOf(plan);
    let done = 0;
    const onGroups = (groups: number) => onProgress?.({ phase: 'writing', done: (done += groups), total });
    onGroups(0);
    const content = archiveContent({ query, program, plan, signer, receiptOf, onGroups, pace });
    const sealOf = (digest: string) => signer.signArchive(claimsOf(plan, digest));
    return { plan, written: await writeArchiveFile(join(folder, `${plan.name}${DRAFT}`), content, sealOf) };
  });
  const place = placeOf(options, plan);
  const draft = `${place.path}${DRAFT}`;
  let read = 0;
  const archive = await verifyArchive(draft, {
    pace,
    onLine: ([kind]) => {
      if (kind === 'group') onProgress?.({ phase: 'verifying', done: (read += 1), total: place.groups });
    },
  });
  if (archive.sha256 !== written.sha256 || archive.content !== written.content)
    throw new ArchiveError(`${draft} was changed after it was written`);
  await nameFile(draft, place.path, archive.sha256);
  return { state: 'kept', ...place, archive };
}

const claimsOf = ({ number, beginsAt, endsAt, previous }: ArchivePlan, content: string) => ({
  number,
  begins_at: beginsAt,
  ends_at: endsAt,
  previous: previous?.content ?? null,
  content,
});

/** Gives the verified draft its name. If a killed run has left the same file, that one stays. */
async function nameFile(draft: string, path: string, sha256: string): Promise<void> {
  if (existsSync(path) && (await digestOfFile(path))?.sha256 !== sha256)
    throw new ArchiveError(
      `${path} exists, and is another archive of the same days. It was made before a backup was restored, or of another database: move it away`,
    );
  await rename(draft, path);
  const folder = await open(join(path, '..'), 'r');
  await folder.sync().finally(() => folder.close());
}

/**
 * Lets others work now and then: a promise if it is time to wait, else nothing. Throws ArchiveError when the run is to
 * end.
 */
function paceOf({ restTimes = 0, signal }: Pick<ArchiveOptions, 'restTimes' | 'signal'>): Pace {
  let begun = performance.now();
  const rest = async (worked: number) => {
    if (restTimes === 0) await nextTurn();
    else await pause(worked * restTimes);
    begun = performance.now();
  };
  return () => {
    if (signal?.aborted) throw new ArchiveError('it was stopped. Nothing is lost: run it again');
    const worked = performance.now() - begun;
    return worked < WORK_MS ? undefined : rest(worked);
  };
}

/** One run at a time: in this process, and on PostgreSQL over all processes. */
async function alone<T>(database: OpenDatabase, run: () => Promise<T>): Promise<T> {
  if (BUSY.has(database)) throw new ArchiveError('an archive is being made already');
  BUSY.add(database);
  const session = database.engine === 'postgres' ? await database.session([]) : null;
  try {
    const [held] = session === null ? [] : await session.pipeline([{ statement: SQL.pgHoldArchives }]);
    if (held?.length === 0) throw new ArchiveError('another process makes an archive of this database already');
    return await run();
  } finally {
    BUSY.delete(database);
    await session?.close();
  }
}

const BUSY = new WeakSet<OpenDatabase>();
