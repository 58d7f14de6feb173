import { existsSync, readdirSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { startPostgres, type Postgres } from './postgres.ts';

const DEBIAN = '/usr/lib/postgresql';
const CHOSEN = 'TOLLGATE_TEST_POSTGRES_BIN';

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
      const before = process.env[CHOSEN];
      process.env[CHOSEN] = bin;
      try {
        return await startPostgres({ fsync: false });
      } finally {
        if (before === undefined) delete process.env[CHOSEN];
        else process.env[CHOSEN] = before;
      }
    },
  };
}
