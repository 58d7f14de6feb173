import { randomBytes } from 'node:crypto';
import { closeSync, constants, fsyncSync, linkSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { giveToOwner, makeFolder } from '#store/owner';

/**
 * Stores a secret in a new file that only its owner can read, and makes its directory. After a crash or on a full disk
 * the file is complete or absent. Returns false if the file exists already: of processes that start at the same time,
 * one is faster. Throws the errors of the file system.
 */
export function storeSecret(path: string, text: string): boolean {
  const directory = dirname(path);
  makeFolder(directory);
  const draft = `${path}.${randomBytes(6).toString('hex')}`;
  let stored = true;
  try {
    const descriptor = openSync(draft, 'wx', 0o600);
    try {
      giveToOwner(descriptor, directory);
      writeFileSync(descriptor, text, { flush: true });
    } finally {
      closeSync(descriptor);
    }
    linkSync(draft, path);
  } catch (error) {
    const { code, syscall } = error as NodeJS.ErrnoException;
    if (code !== 'EEXIST' || syscall !== 'link') throw error;
    stored = false;
  } finally {
    rmSync(draft, { force: true });
  }
  syncDirectory(directory);
  return stored;
}

/** Makes a new link durable by syncing its directory. Windows has no call for this. */
function syncDirectory(path: string): void {
  if (process.platform === 'win32') return;
  const descriptor = openSync(path, constants.O_RDONLY);
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
