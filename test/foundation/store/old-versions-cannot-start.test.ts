import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it, onTestFinished } from 'vitest';
import { adHoc } from '../../support/ad-hoc.ts';
import { ENGINES, openEngine } from '../../support/engines.ts';

const FOLDER = new URL('../../../src/foundation/store/migrations/', import.meta.url);
/** The last migration of versions that ignored migrations which they did not know. */
const LAST_OF_OLD = '0014_payments';

/** The start of such a version: it applies what is not in the table of its migrations. */
const OLD_START = readdirSync(FOLDER)
  .map((file) => file.replace(/\.sql$/, ''))
  .filter((name) => name <= LAST_OF_OLD)
  .sort();

describe.each(ENGINES)('on %s', (name) => {
  it('a version that ignores unknown migrations stops at the first one, and changes nothing', async () => {
    const engine = await openEngine(name);
    onTestFinished(() => engine.dispose());
    const { database } = engine;
    const applied = new Set((await database.query(adHoc('SELECT name FROM migrations'))).map((row) => row['name']));
    const missing = OLD_START.filter((one) => !applied.has(one));
    expect(missing).toEqual(['0001_ledger']);
    const [first] = readFileSync(new URL('0001_ledger.sql', FOLDER), 'utf8').split(/;\n/);
    await expect(database.query(adHoc(first!))).rejects.toThrow(/accounts"? already exists/);
    // The present version opens the database again.
    await database.close();
    const again = await engine.again();
    expect(await again.query(adHoc('SELECT id FROM accounts'))).toEqual([]);
  });
});
