import { rmSync } from 'node:fs';
import { inject } from 'vitest';
import { openDatabase as openReal, type OpenDatabase } from '#store';
import { emptyDataDirectory, newDataDirectory } from './data-directory.ts';
import { bareDatabase, freshDatabase } from './fresh-database.ts';

export interface OpenedEngine {
  readonly database: OpenDatabase;
  /** Of the embedded database; empty for PostgreSQL. */
  readonly dataDir: string;
  /** Another connection to the same data: PostgreSQL only, the embedded database has one opener. */
  again(): Promise<OpenDatabase>;
  /** Closes every connection and removes the data. */
  dispose(): Promise<void>;
}

export const ENGINES = ['sqlite', 'postgres'] as const;
export type EngineName = (typeof ENGINES)[number];

/** A database of either engine that has no rows, opened by another `openDatabase` where a test brings its own. */
export async function openEngine(engine: EngineName, openDatabase: typeof openReal = openReal): Promise<OpenedEngine> {
  const opened: OpenDatabase[] = [];
  // What is opened otherwise makes its own tables: a changed copy may have changed those as well.
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
