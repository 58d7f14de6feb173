import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { inject, onTestFinished } from 'vitest';
import { openDatabase, type OpenDatabase } from '../../../src/store/index.ts';

export const ENGINES = ['sqlite', 'postgres'] as const;
export type Engine = (typeof ENGINES)[number];

/** An empty database of the test's own, with the schema, gone when the test is. */
export async function openTestDatabase(engine: Engine): Promise<OpenDatabase> {
  if (engine === 'postgres') return openPostgres();
  const dataDir = await mkdtemp(join(tmpdir(), 'tollgate-keys-'));
  const database = await openDatabase({ dataDir });
  onTestFinished(async () => {
    await database.close();
    await rm(dataDir, { recursive: true, force: true });
  });
  return database;
}

async function openPostgres(): Promise<OpenDatabase> {
  const name = `keys_${randomBytes(6).toString('hex')}`;
  const url = new URL(inject('postgresUrl'));
  const admin = new pg.Client({ connectionString: url.href });
  await admin.connect();
  await admin.query(`CREATE DATABASE ${name}`);
  const own = new URL(url);
  own.pathname = `/${name}`;
  const database = await openDatabase({ url: own.href, dataDir: tmpdir() });
  onTestFinished(async () => {
    await database.close();
    await admin.query(`DROP DATABASE ${name} WITH (FORCE)`);
    await admin.end();
  });
  return database;
}
