import {
  chmodSync,
  copyFileSync,
  constants,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { CliError } from '../terminal.ts';
import { realPath } from '../discovery.ts';
import type { FormatName, SettingsFile } from './client.ts';
import {
  DOTENV_FORMAT,
  JSON_FORMAT,
  missing,
  withSettings,
  type Format,
  type Setting,
  TOML_FORMAT,
  YAML_FORMAT,
} from './formats.ts';

const FORMATS: Readonly<Record<FormatName, Format>> = {
  json: JSON_FORMAT,
  toml: TOML_FORMAT,
  yaml: YAML_FORMAT,
  dotenv: DOTENV_FORMAT,
};

/** The settings as a file that has nothing else. */
export const settingsText = ({ format, settings }: SettingsFile): string => FORMATS[format].change('', settings);

/** A changed file that is not written yet. */
export interface FileChange {
  readonly path: string;
  readonly format: FormatName;
  /** The settings that the file does not have yet. */
  readonly needed: readonly Setting[];
  /** null if there was no file. */
  readonly before: string | null;
  /** null if the file needs no change. */
  readonly after: string | null;
}

/**
 * The file with its settings. All else in it stays, which is checked by parsing both texts. Throws CliError, with the
 * settings to add by hand, if the file cannot be read or changed.
 */
export function changeOf(file: SettingsFile): FileChange {
  const { format } = file;
  const path = realPath(file.path);
  const before = existsSync(path) ? readFileSync(path, 'utf8') : null;
  try {
    const needed = missing(plainValues(format, before ?? ''), file.settings);
    const after = needed.length === 0 ? null : changedText(format, before ?? '', needed);
    return { path, format, needed, before, after };
  } catch (error) {
    throw new CliError(
      `${path} cannot be changed: ${(error as Error).message.split('\n')[0]}.\nNothing was written. Add this by hand:\n\n${settingsText(file)}`,
      { cause: error },
    );
  }
}

/**
 * The text with the settings. Throws an Error if anything else in it would change. With `emptyTables: 'any'` empty
 * tables may go, as a table of TOML goes with its last sub-table.
 */
export function changedText(
  name: FormatName,
  text: string,
  settings: readonly Setting[],
  { emptyTables = 'same' }: { readonly emptyTables?: 'same' | 'any' } = {},
): string {
  const after = FORMATS[name].change(text, settings);
  const seen = emptyTables === 'any' ? withoutEmpty : (values: unknown) => values;
  if (!isDeepStrictEqual(seen(plainValues(name, after)), seen(plain(withSettings(plainValues(name, text), settings)))))
    throw new Error('its form is not known here');
  return after;
}

function withoutEmpty(value: unknown): unknown {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) return value;
  const members = Object.entries(value).map(([name, one]) => [name, withoutEmpty(one)] as const);
  const full = members.filter(([, one]) => !(isDeepStrictEqual(one, {}) || one === undefined));
  return Object.fromEntries(full);
}

/** The values of a file in the form of JSON. Dates of TOML become strings. */
export const plainValues = (name: FormatName, text: string): unknown => plain(FORMATS[name].parse(text));
const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value)) as unknown;

/** Keeps a copy of the old file next to it. Returns the path of the copy; null if there is no file. */
export function backUp({ path, before }: FileChange, now: Date): string | null {
  if (before === null) return null;
  const backup = `${path}.before-tollgate-${now.toISOString().replaceAll(/[-:]|\.\d+/g, '')}`;
  if (!existsSync(backup)) {
    copyFileSync(path, backup, constants.COPYFILE_EXCL);
    chmodSync(backup, 0o600);
  }
  return backup;
}

/** Writes a changed file. Only the owner can read a file that contains `secret`. */
export function writeChange({ path, before, after }: FileChange, secret: string): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  replaceFile(path, after!, before === null ? 0o600 : statSync(path).mode & (after!.includes(secret) ? 0o700 : 0o777));
}

/** Writes a file under another name and renames it. Without `mode` it keeps the one that it has. */
export function replaceFile(path: string, text: string, mode = statSync(path).mode & 0o777): void {
  const aside = `${path}.${process.pid}`;
  writeFileSync(aside, text, { mode: 0o600, flag: 'wx' });
  chmodSync(aside, mode);
  renameSync(aside, path);
}
