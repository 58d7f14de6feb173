import { expect, inject, test } from 'vitest';
import { type DatabaseError, openDatabase, type PostgresDatabase } from '#store';
import { adHoc } from '../../support/ad-hoc.ts';
import { freshDatabase } from '../../support/fresh-database.ts';

// Statements wait for one of ten connections: not more than a number, not for ever, and the error says how it is.

const CONNECTIONS = 10;
const WAITING_MAX = 2_000;
const SLOW = adHoc('SELECT pg_sleep(0.4)');
const LOCKED = adHoc('SELECT COUNT(*) FROM accounts');

const AT_LOCKS = adHoc(
  "SELECT COUNT(*) AS count FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
);

const codeOf = async (query: Promise<unknown>): Promise<string> =>
  query.then(
    () => 'answered',
    (error: unknown) => (error as DatabaseError).code,
  );

async function opened(run: (database: PostgresDatabase) => Promise<void>): Promise<void> {
  const fresh = await freshDatabase(inject('postgresUrl'));
  const database = (await openDatabase({ url: fresh.url, dataDir: '' })) as PostgresDatabase;
  try {
    await run(database);
  } finally {
    await database.close();
    await fresh.drop();
  }
}

test('a database that answers and has more to do than it can is busy, not away', async () => {
  await opened(async (database) => {
    const codes = await Promise.all(Array.from({ length: 150 }, () => codeOf(database.query(SLOW))));
    const busy = codes.filter((code) => code === 'busy');
    const answered = codes.filter((code) => code === 'answered');
    expect(busy.length).toBeGreaterThan(0);
    expect(answered.length).toBeGreaterThan(0);
    expect(busy.length + answered.length).toBe(codes.length);
  });
});

test('one statement more than may wait is refused at once, and those that wait in vain know that nothing answers', async () => {
  await opened(async (database) => {
    const [session, watcher] = [await database.session([]), await database.session([])];
    await session.pipeline([
      { statement: adHoc('BEGIN') },
      { statement: adHoc('LOCK TABLE accounts IN ACCESS EXCLUSIVE MODE') },
    ]);
    const held = Array.from({ length: CONNECTIONS }, () => codeOf(database.query(LOCKED)));
    await expect.poll(() => watcher.pipeline([{ statement: AT_LOCKS }])).toEqual([[{ count: BigInt(CONNECTIONS) }]]);
    const waiting = Array.from({ length: WAITING_MAX }, () => codeOf(database.query(LOCKED)));
    const order: string[] = [];
    const first = codeOf(database.query(LOCKED)).then((code) => order.push(`refused: ${code}`));
    const all = Promise.all(waiting).then((codes) => order.push([...new Set(codes)].join()));
    await Promise.all([first, all]);
    expect(order).toEqual([expect.stringMatching(/^refused: (busy|connection)$/), 'connection']);
    await session.pipeline([{ statement: adHoc('ROLLBACK') }]);
    expect(new Set(await Promise.all(held))).toEqual(new Set(['answered']));
    await Promise.all([session.close(), watcher.close()]);
  });
});
