import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { CliError } from '../terminal.ts';
import type { FormatName, Machine } from './client.ts';
import { isEmptyAt, valueAt, type Setting, type Value } from './formats.ts';
import { changedText, plainValues, replaceFile, type FileChange } from './write-settings.ts';

interface WrittenValue {
  readonly at: Setting['at'];
  /** The value from before; absent if the file had none. */
  readonly before?: Value;
  /** The written value; absent if the value was removed. */
  readonly wrote?: Value;
  /** How many names of `at` the file already had. Tables below them are removed again when they are empty. */
  readonly had: number;
  /** The client that it was written for, and what of it. */
  readonly client: string;
  readonly tools: boolean;
  /** The folder of the project; null for a file that holds for all projects. */
  readonly project: string | null;
}

interface WrittenFile {
  readonly format: FormatName;
  /**
   * The copy of the file as it was before the first write, or null if there was no file. Absent if somebody else
   * changed the file between two writes, so that no copy is right.
   */
  readonly original?: string | null;
  /** SHA-256 of the file as it was written last. */
  readonly hash: string;
  /** The copies that were made of it, the oldest first. Absent in records of earlier versions. */
  readonly backups?: readonly Backup[];
  /** The folders that were made for it or for this record, the innermost first. */
  readonly folders?: readonly string[];
  readonly values: readonly WrittenValue[];
}

interface Backup {
  readonly path: string;
  /** SHA-256. Nobody's file is deleted that has another one. */
  readonly hash: string;
}

type WrittenFiles = Readonly<Record<string, WrittenFile>>;

/** Which of the written values are meant. `tools` absent means both. */
interface UndoScope {
  readonly client: string;
  readonly tools?: boolean;
  /** true for the files of the project in the working directory, false for the files of all projects. */
  readonly project: boolean;
  readonly cwd: string;
}

/** The record of what `connect` wrote, with the values that were there before. Only its owner can read it. */
export function undoFile({ home, env, platform }: Machine): string {
  const state =
    platform === 'win32'
      ? env['LOCALAPPDATA'] || join(home, 'AppData', 'Local')
      : env['XDG_STATE_HOME'] || join(home, '.local', 'state');
  return join(state, 'tollgate', 'connected.json');
}

function readWritten(path: string): WrittenFiles {
  if (!existsSync(path)) return {};
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as WrittenFiles;
  } catch (error) {
    throw new CliError(
      `${path} cannot be read: ${(error as Error).message}\nIt has what connect wrote before. Move it away to go on without it.`,
      { cause: error },
    );
  }
}

function saveWritten(path: string, written: WrittenFiles): void {
  if (Object.keys(written).length === 0) return rmSync(path, { force: true });
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const aside = `${path}.${process.pid}`;
  writeFileSync(aside, `${JSON.stringify(written, null, 2)}\n`, { mode: 0o600, flag: 'wx' });
  renameSync(aside, path);
}

const hashOf = (text: string): string => createHash('sha256').update(text).digest('hex');
const keyOf = (at: Setting['at']): string => JSON.stringify(at);

/** Records a change that is about to be written. `backup` is the path of the copy of the old file, or null. */
export function recordChange(
  path: string,
  change: FileChange,
  { backup, ...scope }: Pick<WrittenValue, 'client' | 'tools' | 'project'> & { readonly backup: string | null },
): void {
  const all = readWritten(path);
  const known = all[change.path];
  const values = plainValues(change.format, change.before ?? '');
  const unchanged = known !== undefined && change.before !== null && known.hash === hashOf(change.before);
  const earlier = new Map((known?.values ?? []).map((one) => [keyOf(one.at), one]));
  for (const { at, value } of change.needed) {
    const current = valueAt(values, at);
    const old = earlier.get(keyOf(at));
    // The value is still the one of the last write, so what was before that write is what an undo has to bring back.
    const origin =
      old !== undefined && isDeepStrictEqual(current, old.wrote)
        ? { had: old.had, ...('before' in old ? { before: old.before! } : {}) }
        : { had: depthOf(values, at), ...(current === undefined ? {} : { before: current as Value }) };
    earlier.set(keyOf(at), { at, ...origin, ...(value === undefined ? {} : { wrote: value }), ...scope });
  }
  const original = known === undefined ? backup : unchanged ? known.original : undefined;
  const copies = new Map((known?.backups ?? []).map((one) => [one.path, one]));
  if (backup !== null && !copies.has(backup)) copies.set(backup, { path: backup, hash: hashOf(change.before!) });
  const folders = [...(known?.folders ?? []), ...foldersToMake(change.path), ...foldersToMake(path)];
  const file: WrittenFile = {
    format: change.format,
    hash: hashOf(change.after!),
    values: [...earlier.values()],
    backups: [...copies.values()],
    folders: [...new Set(folders)].sort((a, b) => b.length - a.length),
    ...(original === undefined ? {} : { original }),
  };
  saveWritten(path, { ...all, [change.path]: file });
}

/** The folders that have to be made before a file can be written. */
function foldersToMake(file: string): readonly string[] {
  const folder = dirname(file);
  return existsSync(folder) ? [] : [folder, ...foldersToMake(folder)];
}

/** How many steps of a path lead through values that are there. */
function depthOf(values: unknown, at: Setting['at']): number {
  let depth = 0;
  while (depth < at.length && valueAt(values, at.slice(0, depth + 1)) !== undefined) depth++;
  return depth;
}

/** The outcome for one file. `unchanged`: the values that somebody has changed since, which stay. */
export interface Undone {
  readonly path: string;
  readonly outcome: 'as before' | 'removed' | 'gone';
  readonly unchanged: readonly string[];
  /** A copy of the file as it was before, which stays because the file did not become it again. */
  readonly backup: string | null;
}

/**
 * Gives the values that `connect` wrote their old values again. Values that were changed since stay, and so does all
 * else. Rejects with CliError if a file cannot be changed; files before it in the order are changed then.
 */
export function undo(path: string, scope: UndoScope): readonly Undone[] {
  const isMeant = (one: WrittenValue) =>
    one.client === scope.client &&
    (scope.tools === undefined || one.tools === scope.tools) &&
    (scope.project ? one.project === scope.cwd : one.project === null);
  const done: Undone[] = [];
  for (const [file, written] of Object.entries(readWritten(path))) {
    const targets = written.values.filter(isMeant);
    if (targets.length === 0) continue;
    const undone = undoIn(file, written, targets);
    const remaining = written.values.filter((one) => !isMeant(one));
    const { [file]: _, ...others } = readWritten(path);
    const { original: __, ...rest } = written;
    // A part was undone, so the copy is no longer right for the rest.
    saveWritten(path, remaining.length === 0 ? others : { ...others, [file]: { ...rest, values: remaining } });
    const backup = remaining.length === 0 ? removeBackups(written, undone) : null;
    done.push({ ...undone, backup });
    if (remaining.length === 0) removeFolders(path, written.folders ?? []);
  }
  return done;
}

/**
 * Deletes the copies, because they may contain keys. The oldest one stays if something else is left of the file: it is
 * the only copy then. Returns the path of the one that stays.
 */
function removeBackups(
  { backups, original }: WrittenFile,
  { outcome, unchanged }: Omit<Undone, 'backup'>,
): string | null {
  const all = backups ?? (typeof original === 'string' ? [{ path: original, hash: null }] : []);
  const isWhole = outcome !== 'gone' && unchanged.length === 0;
  let stays: string | null = null;
  for (const [index, { path, hash }] of all.entries()) {
    if (!existsSync(path)) continue;
    if (index === 0 && !isWhole) stays = path;
    else if (hash === null || hash === hashOf(readFileSync(path, 'utf8'))) rmSync(path);
  }
  return stays;
}

/** Removes empty folders that were made. Those that are still in use are noted with another file of the record. */
function removeFolders(path: string, folders: readonly string[]): void {
  const inUse = folders.filter((folder) => {
    if (!existsSync(folder)) return false;
    if (readdirSync(folder).length > 0) return true;
    rmdirSync(folder);
    return false;
  });
  const [next, ...others] = Object.entries(readWritten(path));
  if (inUse.length === 0 || next === undefined) return;
  const [file, written] = next;
  const noted = [...new Set([...(written.folders ?? []), ...inUse])].sort((a, b) => b.length - a.length);
  saveWritten(path, { [file]: { ...written, folders: noted }, ...Object.fromEntries(others) });
}

function undoIn(path: string, written: WrittenFile, targets: readonly WrittenValue[]): Omit<Undone, 'backup'> {
  if (!existsSync(path)) return { path, outcome: 'gone', unchanged: [] };
  const text = readFileSync(path, 'utf8');
  // Nobody changed the file since: it becomes what it was, with its comments.
  if (targets.length === written.values.length && written.hash === hashOf(text)) {
    if (written.original === null) {
      rmSync(path);
      return { path, outcome: 'removed', unchanged: [] };
    }
    if (written.original !== undefined && existsSync(written.original)) {
      replaceFile(path, readFileSync(written.original, 'utf8'));
      return { path, outcome: 'as before', unchanged: [] };
    }
  }
  try {
    const values = plainValues(written.format, text);
    const isOurs = ({ at, wrote }: WrittenValue) => isDeepStrictEqual(valueAt(values, at), wrote);
    const ours = targets.filter(isOurs);
    const back = ours.map(({ at, before }) => ({ at, value: before }));
    let after = changedText(written.format, text, back);
    for (const at of tablesOf(ours)) {
      const now = plainValues(written.format, after);
      if (isEmptyAt(now, at))
        after = changedText(written.format, after, [{ at, value: undefined }], { emptyTables: 'any' });
    }
    const unchanged = targets.filter((one) => !isOurs(one)).map(({ at }) => nameOf(at));
    if (written.original === null && isEmptyAt(plainValues(written.format, after), []) && unchanged.length === 0) {
      rmSync(path);
      return { path, outcome: 'removed', unchanged };
    }
    if (after !== text) replaceFile(path, after);
    return { path, outcome: 'as before', unchanged };
  } catch (error) {
    throw new CliError(
      `${path} cannot be changed: ${(error as Error).message.split('\n')[0]}.\nBy hand:\n\n${targets
        .map(({ at, before }) => `${nameOf(at)}: ${before === undefined ? 'remove it' : JSON.stringify(before)}`)
        .join('\n')}`,
      { cause: error },
    );
  }
}

/** The tables that were made for these values, the innermost first. */
function tablesOf(values: readonly WrittenValue[]): readonly Setting['at'][] {
  const tables = new Map<string, Setting['at']>();
  for (const { at, had } of values)
    for (let depth = at.length - 1; depth > had; depth--) {
      const table = at.slice(0, depth);
      tables.set(keyOf(table), table);
    }
  return [...tables.values()].sort((a, b) => b.length - a.length);
}

const nameOf = (at: Setting['at']): string => at.map((step) => (typeof step === 'string' ? step : step.name)).join('.');
