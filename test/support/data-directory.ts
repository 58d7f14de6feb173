import { constants, copyFileSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/**
 * The environment variable with the folder of this run's data directories. The run's setup sets it. Without it
 * temporary folders are used.
 */
const FOLDER = 'TOLLGATE_TEST_DATA';
const DATABASE = 'tollgate.db';
const ROOM_BYTES = 2 * 1024 ** 3;

/** The folder in memory, on Linux. */
export const MEMORY = '/dev/shm';

/** Creates a data directory with an embedded database that has all tables and no rows. The caller removes it. */
export function newDataDirectory(): string {
  const directory = emptyDataDirectory();
  fillDataDirectory(directory);
  return directory;
}

/** Creates an empty folder. The caller removes it. */
export function emptyDataDirectory(): string {
  return mkdtempSync(join(process.env[FOLDER] ?? tmpdir(), 'data-'));
}

/** Puts an embedded database with all its tables into a data directory that is empty or doesn't exist. */
export function fillDataDirectory(directory: string): void {
  const folder = process.env[FOLDER];
  if (folder === undefined) return;
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  if (readdirSync(directory).length === 0)
    copyFileSync(join(folder, 'migrated', DATABASE), join(directory, DATABASE), constants.COPYFILE_EXCL);
}

/**
 * Creates the folder of a run's data directories. It is in memory if there is enough room, because no test needs bytes
 * that survive a power loss. `migrate` makes the database from which the others are copied.
 */
export async function prepareDataDirectories(
  prefix: string,
  migrate: (dataDir: string) => Promise<void>,
): Promise<() => void> {
  const folder = mkdtempSync(join(hasRoom() ? MEMORY : tmpdir(), prefix));
  await migrate(join(folder, 'migrated'));
  process.env[FOLDER] = folder;
  return () => rmSync(folder, { recursive: true, force: true });
}

function hasRoom(): boolean {
  try {
    const { bavail, bsize } = statfsSync(MEMORY);
    return bavail * bsize >= ROOM_BYTES;
  } catch {
    return false;
  }
}
