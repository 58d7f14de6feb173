import { rmSync } from 'node:fs';
import { inject } from 'vitest';
import { openDatabase as openReal, type OpenDatabase } from '#store';
import { emptyDataDirectory, newDataDirectory } from './data-directory.ts';
import { bareDatabase, freshDatabase } from './fresh-database.ts';

export interface OpenedEngine {
  readonly database: OpenDatabase;
  /** Folder of the embedded database. Empty for PostgreSQL. */
  readonly dataDir: string;
  /**
   * Opens another connection to the same data. Only for PostgreSQL, because the embedded database allows only one
   * process.
   */
  again(): Promise<OpenDatabase>;
  /** Closes every connection and deletes the data. */
  dispose(): Promise<void>;
}

export type EngineName = 'sqlite' | 'postgres';

/** The databases of tests that only the full run has. */
export const BOTH_ENGINES: readonly EngineName[] = ['sqlite', 'postgres'];

/**
 * The databases of all other tests that run on each. `npm test` starts no server, so it has the embedded one alone; the
 * full run, which comes after it, has the other.
 */
export const ENGINES: readonly EngineName[] =
  { everyday: ['sqlite' as const], full: ['postgres' as const] }[process.env['TOLLGATE_TESTS'] ?? ''] ?? BOTH_ENGINES;

/** Opens a database of either engine without rows. A test may bring another `openDatabase`. */
export async function openEngine(engine: EngineName, openDatabase: typeof openReal = openReal): Promise<OpenedEngine> {
  const opened: OpenDatabase[] = [];
  // Another `openDatabase` creates its own tables, because a changed copy may have changed those as well.
  const isReal = openDatabase === openReal;
  const dataDir = engine === 'postgres' ? '' : isReal ? newDataDirectory() : emptyDataDirectory();
  const makeDatabase = isReal ? freshDatabase : bareDatabase;
  const fresh = engine === 'postgres' ? await makeDatabase(inject('postgresUrl')) : null;
  const again = async () => {
    const database = await openDatabase({ url: fresh?.url, dataDir });
    opened.push(database);
    return database;
  };
  return {
    database: await again(),
    dataDir,
    again,
    async dispose() {
      await Promise.all(opened.map((database) => database.close()));
      await fresh?.drop();
      if (dataDir) rmSync(dataDir, { recursive: true });
    },
  };
}
