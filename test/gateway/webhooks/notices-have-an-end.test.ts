import { expect, onTestFinished, test } from 'vitest';
import { createKeyStore } from '#auth/keys';
import { createBudgetNotices } from '../../../src/gateway/webhooks/budget-notices.ts';
import { adHoc } from '../../support/ad-hoc.ts';
import { ENGINES, openTestDatabase } from '../test-database.ts';

// The limit of a budget that never resets can be changed any number of times, and each causes notices.

const DAY = 86_400_000;
const PERCENTS = [10, 20, 30, 40, 50, 60, 70, 80, 90, 100];

test.each(ENGINES)('%s: of a budget without an end the newest 100 stay, until its key is gone', async (engine) => {
  const database = await openTestDatabase(engine);
  let at = 1_000 * DAY;
  const now = () => at;
  const keys = createKeyStore(database, { now });
  const told: unknown[] = [];
  const notices = createBudgetNotices({
    database,
    fetch: async () => {
      throw new Error('nobody has a webhook');
    },
    secret: Buffer.alloc(32, 7),
    now,
    everyMs: null,
    onNotice: (body) => told.push(body),
    onLost: () => {},
    onError: () => {},
  });
  onTestFinished(() => notices.close());
  const account = 'tollgate:local:busy';
  const created = await keys.create({ account, label: 'key', kind: 'live', limit: 1n, limitNotify: PERCENTS });
  const { hash } = created!.record;
  await database.query(adHoc('INSERT INTO budgets (id, spent, locked) VALUES ($1, 1000, 0)'), [`${hash}:all`]);
  const kept = async () => (await notices.list(account, 1_000)).length;
  for (let limit = 1n; limit <= 15n; limit++) {
    at += 1_000;
    await keys.update(account, hash, { limit });
    await notices.run();
  }
  expect(told).toHaveLength(150);
  expect(await kept()).toBe(100);

  // They are not told again as long as the key is there.
  at += 101 * DAY;
  expect(await notices.sweep(1_000)).toBe(0);
  await keys.delete(account, hash);
  expect(await notices.sweep(1_000)).toBe(100);
});
