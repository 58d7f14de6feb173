import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, inject, it, onTestFinished } from 'vitest';
import { DatabaseError, openDatabase } from '#store';
import { adHoc } from '../../support/ad-hoc.ts';
import { ENGINES } from '../../support/engines.ts';
import { bareDatabase } from '../../support/fresh-database.ts';
import { VERSION } from '../../../src/foundation/version.ts';

const KNOWN = readdirSync(new URL('../../../src/foundation/store/migrations/', import.meta.url))
  .sort()
  .map((file) => file.replace(/\.sql$/, ''));

describe.each(ENGINES)('a database of a newer tollgate on %s', (engine) => {
  it('is refused by name', async () => {
    const dataDir = mkdtempSync(join(tmpdir(), 'tollgate-newer-'));
    onTestFinished(() => rmSync(dataDir, { recursive: true }));
    const fresh = engine === 'postgres' ? await bareDatabase(inject('postgresUrl')) : null;
    if (fresh) onTestFinished(() => fresh.drop());
    const open = () => openDatabase({ url: fresh?.url, dataDir });

    const first = await open();
    await first.query(adHoc("INSERT INTO migrations (name, applied_at) VALUES ('9999_future', 1)"));
    // One that this version would apply.
    await first.query(adHoc(`DELETE FROM migrations WHERE name = '${KNOWN[0]}'`));
    await first.close();

    const error = await open().then(
      (database) => database.close(),
      (reason: unknown) => reason,
    );
    expect(error).toBeInstanceOf(DatabaseError);
    const { message, unavailable } = error as DatabaseError;
    expect(message).toContain('9999_future');
    expect(message).toContain(`up to ${KNOWN.at(-1)}`);
    expect(message).toContain('Run the newer version, or restore a backup from before the upgrade');
    expect(message).toContain(`this is tollgate ${VERSION}`);
    expect(message).toContain(fresh ? new URL(fresh.url).pathname : join(dataDir, 'tollgate.db'));
    expect(unavailable).toBe(false);
  });

  it('says which version it needs', async () => {
    const dataDir = mkdtempSync(join(tmpdir(), 'tollgate-newer-'));
    onTestFinished(() => rmSync(dataDir, { recursive: true }));
    const fresh = engine === 'postgres' ? await bareDatabase(inject('postgresUrl')) : null;
    if (fresh) onTestFinished(() => fresh.drop());
    const open = () => openDatabase({ url: fresh?.url, dataDir });

    const first = await open();
    const versions = await first.query(adHoc('SELECT DISTINCT version FROM migrated_by'));
    expect(versions).toEqual([{ version: VERSION }]);
    for (const [name, version] of [
      ['9998_future', '8.8.8'],
      ['9999_future', '9.9.9'],
    ]) {
      await first.query(adHoc(`INSERT INTO migrations (name, applied_at) VALUES ('${name}', 1)`));
      await first.query(adHoc(`INSERT INTO migrated_by (name, version) VALUES ('${name}', '${version}')`));
    }
    await first.close();
    await expect(open()).rejects.toThrow(
      /a newer tollgate, 9\.9\.9, has changed it, with 9998_future, 9999_future; .* Run tollgate 9\.9\.9 or newer, or restore/,
    );
  });
});
