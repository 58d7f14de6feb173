import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { COMPARE_TEMPORARY, compareSums, createOldUsage, createRollUp } from '#analytics';
import { audit, createLedger } from '#billing/compose';
import { adHoc } from '../../support/ad-hoc.ts';
import { fund, makeCall, type CountedCall } from '../../support/counted-calls.ts';
import { ENGINES, openEngine, type OpenedEngine } from '../../support/engines.ts';

const DAY_MS = 86_400_000;
const fail = (error: unknown): never => {
  throw error;
};
const FIRST = 20_000;
const CALL: CountedCall = {
  id: 'one',
  account: 'acme',
  key: null,
  primitive: 'model',
  service: 's/one',
  provider: 'p1',
  end: 'settle',
  charge: 7,
  prompt: 3,
  completion: 4,
  reasoning: 1,
  firstByteMs: 10,
  durationMs: 20,
};

describe.each(ENGINES)('%s', (engine) => {
  let opened: OpenedEngine;
  let now = FIRST * DAY_MS;
  const rollUp = async () => {
    const own = createRollUp({ database: opened.database, now: () => now, everyMs: null, onError: fail });
    await own.run();
    await own.close();
  };
  const analytics = async () => {
    const also = { temporary: COMPARE_TEMPORARY, check: compareSums };
    const { checks } = await audit(opened.database, { overdueMs: null, also });
    expect(checks.filter(({ ok, name }) => !ok && name !== 'analytics')).toEqual([]);
    return checks.at(-1)!;
  };
  const change = (text: string) => opened.database.query(adHoc(text));

  beforeAll(async () => {
    opened = await openEngine(engine);
  });
  afterAll(() => opened.dispose());

  test('it says that they are equal, and how far they are behind', async () => {
    const ledger = await createLedger({ database: opened.database, now: () => now });
    expect(await analytics()).toMatchObject({ ok: true, detail: 'nothing is added up yet' });
    await fund(opened.database, ledger, ['acme', 'other']);
    await makeCall(ledger, CALL, now);
    now += DAY_MS;
    await makeCall(ledger, { ...CALL, id: 'two', account: 'other', end: 'release' }, now);
    await rollUp();
    expect(await analytics()).toMatchObject({
      name: 'analytics',
      ok: true,
      detail: 'equal: the sums of the days are those of the ledger',
    });
    await makeCall(ledger, { ...CALL, id: 'three' }, now);
    expect(await analytics()).toMatchObject({ ok: true, detail: expect.stringContaining('1 calls behind') as string });
    await ledger.close();
    await rollUp();
  });

  test.each([
    ['usage_days', 'charged', 'acme: 1 charged other than in the ledger'],
    ['usage_days', 'failed', '1 calls other than in the ledger'],
    ['usage_days', 'prompt', 'other than those of the accounts'],
    ['service_days', 'completion', '1 completion other than those of the accounts'],
    ['public_days', 'requests', '1 requests other than those of the services'],
    ['user_counts', 'users', '1 active users are counted otherwise'],
  ])('a change of %s is told: %s', async (table, figure, told) => {
    const where = `WHERE day = ${FIRST}`;
    await change(`UPDATE ${table} SET ${figure} = ${figure} + 1 ${where}`);
    expect(await analytics()).toMatchObject({ ok: false, detail: expect.stringContaining(told) as string });
    await change(`UPDATE ${table} SET ${figure} = ${figure} - 1 ${where}`);
    expect(await analytics()).toMatchObject({ ok: true });
  });

  test('a user too many is told', async () => {
    await change(`INSERT INTO user_days (day, account_hash) VALUES (${FIRST}, 1)`);
    expect(await analytics()).toMatchObject({ ok: false, detail: expect.stringContaining('1 active users') as string });
    await change('DELETE FROM user_days WHERE account_hash = 1');
  });

  test('times and attempts are removed after 60 days', async () => {
    now = (FIRST + 60) * DAY_MS;
    await change(
      `INSERT INTO offer_days (offer, day, successes, failures) VALUES ('o', ${FIRST}, 1, 1), ('o', ${FIRST + 1}, 1, 1)`,
    );
    const days = async (table: string) =>
      (await change(`SELECT DISTINCT day FROM ${table} ORDER BY day`)).map(({ day }) => Number(day));
    expect(await days('service_times')).toEqual([FIRST, FIRST + 1]);
    const old = createOldUsage({ database: opened.database, now: () => now, days: 400 });
    while ((await old.sweep(1)) > 0);
    for (const table of ['service_times', 'offer_days']) expect(await days(table)).toEqual([FIRST + 1]);
  });

  test('rows of accounts that were removed for their age are not missed', async () => {
    now = (FIRST + 50) * DAY_MS;
    const old = createOldUsage({ database: opened.database, now: () => now, days: 50 });
    expect(await old.sweep(1)).toBe(1);
    expect(await old.sweep(1)).toBe(0);
    expect(await change(`SELECT MIN(day) AS day FROM usage_days`)).toEqual([{ day: BigInt(FIRST + 1) }]);
    expect(await analytics()).toMatchObject({ ok: true });
    await change(`UPDATE usage_days SET charged = charged + 1 WHERE account = 'acme'`);
    expect(await analytics()).toMatchObject({ ok: false });
  });
});
