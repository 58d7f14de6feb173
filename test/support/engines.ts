import { rmSync } from 'node:fs';
import { inject } from 'vitest';
import { openDatabase as openReal, type OpenDatabase } from '#store';
import { newDataDirectory } from './data-directory.ts';
import { freshDatabase } from './fresh-database.ts';

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
  const dataDir = engine === 'sqlite' ? newDataDirectory() : '';
  const fresh = engine === 'postgres' ? await freshDatabase(inject('postgresUrl')) : null;
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
