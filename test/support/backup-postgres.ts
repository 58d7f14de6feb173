import { existsSync, readdirSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { vi } from 'vitest';
import { startPostgres, type Postgres } from './postgres.ts';

const DEBIAN = '/usr/lib/postgresql';
const CHOSEN = 'TOLLGATE_TEST_POSTGRES_BIN';
/** The data that servers of a run are copies of: those of another version. */
const KEPT = 'TOLLGATE_TEST_POSTGRES_DATA';

/**
 * A server with the programs that make backups of it, which have to be of its version: those of the system. The server
 * that tests share has none. Throws what helps where the system has none either.
 */
export function backupPostgres(): { readonly bin: string; start(): Promise<Postgres> } {
  const folders = [
    ...(existsSync(DEBIAN) ? readdirSync(DEBIAN).map((version) => join(DEBIAN, version, 'bin')) : []),
    ...(process.env['PATH'] ?? '').split(delimiter),
  ];
  const bin = folders.find((folder) =>
    ['postgres', 'initdb', 'pg_dump', 'pg_restore'].every((name) => existsSync(join(folder, name))),
  );
  if (bin === undefined)
    throw new Error(
      'No PostgreSQL with pg_dump and pg_restore to test with. Install it (Debian: apt-get install postgresql; macOS: brew install postgresql).',
    );
  return {
    bin,
    async start() {
      vi.stubEnv(CHOSEN, bin);
      vi.stubEnv(KEPT, undefined);
      try {
        return await startPostgres({ fsync: false });
      } finally {
        vi.unstubAllEnvs();
      }
    },
  };
}
