import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createKey, parseKey } from '#auth/accounts';
import { CliError } from './cli-error.ts';

const FILE = 'admin-key';

/** The admin key of a data directory. The first start creates it, in a file that only its owner can read. */
export function loadAdminKey(dataDir: string): string {
  const path = join(dataDir, FILE);
  try {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 });
    const { text } = createKey('admin');
    // `wx`: if two processes start at the same time, only one writes, and both read the same key.
    writeFileSync(path, `${text}\n`, { mode: 0o600, flag: 'wx' });
    return text;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'EEXIST') {
      throw new CliError(
        `The admin key cannot be stored in ${path} (${code}).\nChoose a data directory that can be written: TOLLGATE_DATA=… or --data …`,
        { cause: error },
      );
    }
  }
  const text = readFileSync(path, 'utf8').trim();
  if (parseKey(text)?.kind !== 'admin')
    throw new CliError(`${path} does not hold an admin key.\nRemove the file: the next start makes a new key.`);
  return text;
}
