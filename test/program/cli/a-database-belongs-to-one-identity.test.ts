import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import { adHoc } from '../../support/ad-hoc.ts';
import { BOTH_ENGINES } from '../../support/engines.ts';
import { freshDatabase, type FreshDatabase } from '../../support/fresh-database.ts';
import { newDataDirectory } from '../../support/data-directory.ts';
import { IDENTITY_SEED, startSpine } from '../../support/spine.ts';
import { makePlace } from './tollgate.ts';

// A gateway with a typo in its seed must not serve: its receipts have an unknown key, and it can read no secret.

const OTHER = '22'.repeat(32);

describe.each(BOTH_ENGINES)('%s', (engine) => {
  let fresh: FreshDatabase | null = null;
  beforeEach(async () => {
    if (engine === 'postgres') fresh = await freshDatabase(inject('postgresUrl'));
  });
  afterEach(async () => {
    await fresh?.drop();
    fresh = null;
  });
  const start = async (dataDir: string, seed: string | undefined) =>
    startSpine({
      dataDir,
      env: { TOLLGATE_IDENTITY_SEED: seed },
      ...(fresh === null ? {} : { databaseUrl: fresh.url }),
    });

  it('that has an identity refuses another one, and goes on with its own', async () => {
    const dataDir = newDataDirectory();
    await (await start(dataDir, IDENTITY_SEED)).stop();
    // Also from another machine, which has no journal-head.json of this database.
    const machines = engine === 'postgres' ? [dataDir, newDataDirectory()] : [dataDir];
    for (const machine of machines) {
      const knew = existsSync(join(machine, 'journal-head.json'));
      const refused = await start(machine, OTHER).catch((error: unknown) => error);
      expect(refused).toMatchObject({ name: 'IdentityError' });
      const { message } = refused as Error;
      expect(message).toMatch(/^The database belongs to gateways with the identity \S{43}, known since 20/);
      expect(message).toContain('TOLLGATE_IDENTITY_SEED');
      expect(message).toContain('tollgate restored --adopt-identity');
      // A refused start leaves nothing that the right one would stumble over.
      expect(existsSync(join(machine, 'journal-head.json'))).toBe(knew);
      const again = await start(machine, IDENTITY_SEED);
      expect(await again.faults()).toEqual([]);
      await again.stop();
    }
  });

  it('of before gets its identity at the next start', async () => {
    const dataDir = newDataDirectory();
    const first = await start(dataDir, IDENTITY_SEED);
    await first.app.database.query(adHoc('DELETE FROM identity'));
    await first.stop();
    await (await start(dataDir, IDENTITY_SEED)).stop();
    await expect(start(dataDir, OTHER)).rejects.toThrow('belongs to gateways with the identity');
  });

  it('gets another identity from the operator alone', async () => {
    const place = await makePlace();
    try {
      const url = fresh === null ? {} : { DATABASE_URL: fresh.url };
      await (await start(place.data, IDENTITY_SEED)).stop();
      const [own, other] = [IDENTITY_SEED, OTHER].map((seed) => ({ ...url, TOLLGATE_IDENTITY_SEED: seed }));
      expect(await place.run(['restored'], own)).toMatchObject({ code: 0 });
      for (const flags of [[], ['--accept']])
        expect(await place.run(['restored', ...flags], other)).toMatchObject({
          code: 1,
          output: expect.stringContaining('--adopt-identity'),
        });
      expect(await place.run(['restored', '--adopt-identity', '--accept'], other)).toMatchObject({ code: 0 });
      await expect(start(place.data, IDENTITY_SEED)).rejects.toThrow('belongs to');
      const adopted = await start(place.data, OTHER);
      expect(await adopted.faults()).toEqual([]);
      await adopted.stop();
    } finally {
      await place.clear();
    }
  });
});
