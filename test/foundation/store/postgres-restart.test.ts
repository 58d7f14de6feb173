import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { DatabaseError, openDatabase, type OpenDatabase } from '#store';
import { adHoc } from '../../support/ad-hoc.ts';
import { startPostgres, type Postgres } from '../../support/postgres.ts';

const ONE = adHoc('SELECT 1 AS one');
const SLEEP = adHoc('SELECT pg_sleep(60)');

let postgres: Postgres;
let database: OpenDatabase;
beforeAll(async () => {
  postgres = await startPostgres({ fsync: false });
  database = await openDatabase({ url: postgres.url, dataDir: '' });
});
afterAll(async () => {
  await database.close();
  await postgres.stop();
});

describe('when PostgreSQL restarts or stops', () => {
  test('what was running fails as unavailable, and the next query works', async () => {
    // Idle connections in the pool beside the busy one.
    await Promise.all(Array.from({ length: 5 }, () => database.query(ONE)));
    const running = database.query(SLEEP).catch((error: unknown) => error);
    const restarted = postgres.restart('immediate');
    const error = await running;
    expect(error).toBeInstanceOf(DatabaseError);
    expect(error).toMatchObject({ unavailable: true });
    await restarted;
    expect(await database.query(ONE)).toEqual([{ one: 1n }]);
    expect(await database.batch([{ statement: ONE }])).toEqual([[{ one: 1n }]]);
  });

  test('what it does not answer fails as unavailable, and the connection is not used again', async () => {
    const impatient = await openDatabase({ url: `${postgres.url}?query_timeout=300`, dataDir: '' });
    await impatient.query(ONE);
    postgres.freeze();
    await expect(impatient.query(ONE)).rejects.toMatchObject({ name: 'DatabaseError', unavailable: true });
    postgres.thaw();
    expect(await impatient.query(ONE)).toEqual([{ one: 1n }]);
    await impatient.close();
  });

  test('a session whose set-up it does not answer is given up', async () => {
    const { engine } = database;
    if (engine !== 'postgres') throw new Error('this is not PostgreSQL');
    await expect(database.session([SLEEP])).rejects.toMatchObject({ name: 'DatabaseError', unavailable: true });
  });

  test('while it is down queries fail as unavailable at once', async () => {
    await postgres.kill9();
    await expect(database.query(ONE)).rejects.toMatchObject({ name: 'DatabaseError', unavailable: true });
    const opening = openDatabase({ url: postgres.url, dataDir: '' });
    await expect(opening).rejects.toThrow(
      /The database 127\.0\.0\.1:\d+\/postgres \(DATABASE_URL\) cannot be used: .*ECONNREFUSED/,
    );
    await expect(opening).rejects.toMatchObject({ unavailable: true });
    await postgres.restart();
    expect(await database.query(ONE)).toEqual([{ one: 1n }]);
  });
});
