import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createKey, parseKey } from '#auth';
import { storeSecret } from '#auth/identity';
import { CliError } from '../terminal.ts';

const FILE = 'admin-key';

/** The admin key of a data directory. The first start creates it, in a file that only its owner can read. */
export function loadAdminKey(dataDir: string): string {
  const path = join(dataDir, FILE);
  const text = read(path) ?? make(path) ?? read(path);
  if (text === null || parseKey(text)?.kind !== 'admin')
    throw new CliError(`${path} does not hold an admin key.\nRemove the file: the next start makes a new key.`);
  return text;
}

function read(path: string): string | null {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw unusable(`The admin key in ${path} cannot be read`, error);
  }
}

/** Writes a new key. null if another process that starts at the same time was faster: both use its key. */
function make(path: string): string | null {
  const { text } = createKey('admin');
  try {
    return storeSecret(path, `${text}\n`) ? text : null;
  } catch (error) {
    throw unusable(`The admin key cannot be stored in ${path}`, error);
  }
}

function unusable(what: string, error: unknown): CliError {
  return new CliError(
    `${what} (${(error as NodeJS.ErrnoException).code}).\nChoose a data directory that this user can read and write: TOLLGATE_DATA=… or --data …`,
    { cause: error },
  );
}
