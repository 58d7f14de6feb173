import { expect, it } from 'vitest';
import { createAdminKeys } from '#auth';
import { adHoc } from '../../support/ad-hoc.ts';
import { allAtOnce, ENGINES, openTestDatabase } from '../test-database.ts';

const MAX = 1_000;
const FILL = adHoc(`INSERT INTO admin_keys (hash, id, label, roles, created_at)
  WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${MAX - 1})
  SELECT 'hash-' || i, 'id-' || i, 'x', '[]', 1 FROM n`);

it.each(ENGINES)('there are no more keys of administrators than may be, also all at once: %s', async (engine) => {
  const database = await openTestDatabase(engine);
  const keys = createAdminKeys(database, { now: () => 2 });
  await database.query(FILL);
  const create = () => keys.create({ label: 'x', roles: ['read'], expiresAt: null });
  const [last, ...more] = (await allAtOnce(database, 'admin_keys', create)).filter((one) => one !== null);
  expect(last).toBeDefined();
  expect(more).toEqual([]);
  // A revoked key makes room.
  await keys.revoke(last!.record.id);
  expect(await create()).not.toBeNull();
  expect(await create()).toBeNull();
});
