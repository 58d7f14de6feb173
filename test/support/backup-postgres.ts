import { existsSync, readdirSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { vi } from 'vitest';
import { startPostgres, type Postgres } from './postgres.ts';

const DEBIAN = '/usr/lib/postgresql';
const CHOSEN = 'TOLLGATE_TEST_POSTGRES_BIN';
/**
 * The environment variable with the data directory from which a run's servers are copied. It is removed here, because
 * that data belongs to another PostgreSQL version.
 */
const KEPT = 'TOLLGATE_TEST_POSTGRES_DATA';

/**
 * Finds a PostgreSQL installation that includes the backup programs, which must have the server's version. The server
 * that the tests share has no such programs, so the system's installation is used. Throws with advice if the system has
 * none.
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
