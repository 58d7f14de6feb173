import { onTestFinished } from 'vitest';
import type { OpenDatabase } from '#store';
import { ENGINES, openEngine, type EngineName } from '../support/engines.ts';

export { ENGINES, type EngineName };

/** An empty database that is gone when the test is. */
export async function openTestDatabase(engine: EngineName): Promise<OpenDatabase> {
  const opened = await openEngine(engine);
  onTestFinished(() => opened.dispose());
  return opened.database;
}
