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
import { CliError } from '../cli-error.ts';
import { realPath } from '../discovery.ts';
import type { FormatName, SettingsFile } from './client.ts';
import { DOTENV_FORMAT } from './dotenv-format.ts';
import { JSON_FORMAT } from './json-format.ts';
import { missing, withSettings, type Format } from './settings.ts';
import { TOML_FORMAT } from './toml-format.ts';
import { YAML_FORMAT } from './yaml-format.ts';

const FORMATS: Readonly<Record<FormatName, Format>> = {
  json: JSON_FORMAT,
  toml: TOML_FORMAT,
  yaml: YAML_FORMAT,
  dotenv: DOTENV_FORMAT,
};

/** The settings as a file that has nothing else. */
export const settingsText = ({ format, settings }: SettingsFile): string => FORMATS[format].change('', settings);

/** A changed file that is not written yet. */
export interface Change {
  readonly path: string;
  /** null if there was no file. */
  readonly before: string | null;
  /** null if the file needs no change. */
  readonly after: string | null;
}

/**
 * The file with its settings. All else in it stays, which is checked by parsing both texts. Throws CliError, with the
 * settings to add by hand, if the file cannot be read or changed.
 */
export function changeOf(file: SettingsFile): Change {
  const format = FORMATS[file.format];
  const path = realPath(file.path);
  const before = existsSync(path) ? readFileSync(path, 'utf8') : null;
  try {
    const values = plain(format.parse(before ?? ''));
    const needed = missing(values, file.settings);
    if (needed.length === 0) return { path, before, after: null };
    const after = format.change(before ?? '', needed);
    if (!isDeepStrictEqual(plain(format.parse(after)), plain(withSettings(values, needed))))
      throw new Error('its form is not known here');
    return { path, before, after };
  } catch (error) {
    throw new CliError(
      `${path} cannot be changed: ${(error as Error).message.split('\n')[0]}.\nNothing was written. Add this by hand:\n\n${settingsText(file)}`,
      { cause: error },
    );
  }
}

/** Values in the form of JSON. Dates of TOML become strings. */
const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value)) as unknown;

/**
 * Writes a changed file under another name and renames it. Keeps a copy of the old file next to it, and returns the
 * path of the copy; null if there was no file. Only the owner can read a file that contains `secret`.
 */
export function writeChange(
  { path, before, after }: Change,
  { secret, now }: { readonly secret: string; readonly now: Date },
): string | null {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const mode = before === null ? 0o600 : statSync(path).mode & (after!.includes(secret) ? 0o700 : 0o777);
  const backup = before === null ? null : `${path}.before-tollgate-${now.toISOString().replaceAll(/[-:]|\.\d+/g, '')}`;
  if (backup !== null && !existsSync(backup)) {
    copyFileSync(path, backup, constants.COPYFILE_EXCL);
    chmodSync(backup, 0o600);
  }
  const aside = `${path}.${process.pid}`;
  writeFileSync(aside, after!, { mode: 0o600, flag: 'wx' });
  chmodSync(aside, mode);
  renameSync(aside, path);
  return backup;
}
