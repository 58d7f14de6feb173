import { expect, onTestFinished } from 'vitest';
import type { OpenDatabase } from '#store';
import { adHoc } from '../support/ad-hoc.ts';
import { BOTH_ENGINES, ENGINES, openEngine, type EngineName } from '../support/engines.ts';

export { BOTH_ENGINES, ENGINES, type EngineName };

/** An empty database that is gone when the test is. */
export async function openTestDatabase(engine: EngineName): Promise<OpenDatabase> {
  const opened = await openEngine(engine);
  onTestFinished(() => opened.dispose());
  return opened.database;
}

const WAITING = adHoc(
  "SELECT COUNT(*) AS count FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
);

/** Makes 8 calls that write to a table. On PostgreSQL none gets to the table before all have come. */
export async function allAtOnce<T>(database: OpenDatabase, table: string, call: (index: number) => Promise<T>) {
  const calls = () => Promise.all(Array.from({ length: 8 }, (_, index) => call(index)));
  if (database.engine === 'sqlite') return calls();
  const session = await database.session([]);
  try {
    await session.pipeline([{ statement: adHoc('BEGIN') }, { statement: adHoc(`LOCK TABLE ${table} IN SHARE MODE`) }]);
    const results = calls();
    await expect.poll(() => database.query(WAITING), { timeout: 10_000, interval: 5 }).toEqual([{ count: 8n }]);
    await session.pipeline([{ statement: adHoc('COMMIT') }]);
    return await results;
  } finally {
    await session.close();
  }
}
