import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { COMPARE_TEMPORARY, compareSums, createRollUp, findMarket } from '#analytics';
import { audit, createLedger } from '#billing/compose';
import { loadMigrations } from '../../../src/foundation/store/migrations.ts';
import { adHoc } from '../../support/ad-hoc.ts';
import { COUNTED_PRICE, fund, makeCall } from '../../support/counted-calls.ts';
import { ENGINES, openEngine, type OpenedEngine } from '../../support/engines.ts';

const DAY_MS = 86_400_000;
const FIRST = 20_000;
const DAYS = 9;
const ACCOUNTS = ['a', 'b', 'c', 'd', 'e', 'f'];

/** The days of each account, in an order in which later ones are told first as well. */
const PARTS: readonly (readonly (readonly [account: string, day: number])[])[] = [
  [
    ['a', 4],
    ['b', 8],
    ['c', 0],
    ['d', 3],
    ['e', 5],
  ],
  [
    ['a', 0],
    ['a', 8],
    ['b', 2],
    ['d', 4],
    ['c', 1],
    ['e', 2],
  ],
  [
    ['a', 2],
    ['a', 6],
    ['b', 5],
    ['b', 3],
    ['f', 6],
    ['c', 8],
    ['d', 3],
  ],
];

/** The tables as they were before users were counted. */
const UNDONE = [
  'DROP TABLE user_counts',
  'DROP TABLE known_counts',
  'DROP INDEX withdrawals_height',
  'DROP INDEX withdrawals_signed',
  'DROP INDEX deposits_height',
  'DROP INDEX user_days_uncounted',
  'DROP INDEX known_users_uncounted',
  'ALTER TABLE user_days DROP COLUMN counted',
  'ALTER TABLE known_users DROP COLUMN counted',
  'CREATE INDEX user_days_previous ON user_days (day, previous, account_hash)',
  'CREATE INDEX known_users_since ON known_users (since, wallet)',
];

describe.each(ENGINES)('%s', (engine) => {
  let opened: OpenedEngine;
  beforeAll(async () => {
    opened = await openEngine(engine);
    const clock = { now: FIRST * DAY_MS };
    const ledger = await createLedger({ database: opened.database, now: () => clock.now });
    await fund(opened.database, ledger, ACCOUNTS);
    let calls = 0;
    for (const part of PARTS) {
      for (const [account, day] of part) {
        clock.now = (FIRST + day) * DAY_MS;
        calls += 1;
        const call = { id: `call-${calls}`, account, key: null, provider: 'p', end: 'settle', charge: 1 } as const;
        const used = { primitive: 'model', service: COUNTED_PRICE.service, prompt: 1, completion: 1 } as const;
        const took = { reasoning: 0, firstByteMs: 1, durationMs: 1 };
        await makeCall(ledger, { ...call, ...used, ...took }, clock.now);
      }
      await rollUp(clock.now);
    }
    await ledger.close();
  });
  afterAll(() => opened.dispose());

  const rollUp = async (now: number) => {
    const own = createRollUp({
      database: opened.database,
      now: () => now,
      everyMs: null,
      onError: (error) => {
        throw error;
      },
    });
    await own.run();
    await own.close();
  };
  const analytics = async () => {
    const also = { temporary: COMPARE_TEMPORARY, check: compareSums };
    return (await audit(opened.database, { overdueMs: null, also })).checks.at(-1)!;
  };
  const active = (from: number, to: number, usersMin: number) => {
    const of = (day: number) => new Set(PARTS.flat().flatMap(([account, at]) => (at === day ? [account] : [])));
    const days = Array.from({ length: to - from + 1 }, (_, index) => of(from + index));
    return new Set(days.flatMap((users) => (users.size < usersMin ? [] : [...users]))).size;
  };

  test('users of every range are counted once, with days that are kept back and without', async () => {
    for (let from = 0; from < DAYS; from += 1)
      for (let to = from; to < DAYS; to += 1)
        for (const usersMin of [0, 2, 3]) {
          const range = { first: FIRST + from, last: FIRST + to };
          const shown = { until: Number.MAX_SAFE_INTEGER, usersMin, development: false };
          const { activeUsers } = await findMarket(opened.database.query, range, shown);
          expect(activeUsers, `${from} to ${to}, at least ${usersMin}`).toBe(active(from, to, usersMin));
        }
  });

  const change = (text: string) => opened.database.query(adHoc(text));
  const market = () => {
    const shown = { until: Number.MAX_SAFE_INTEGER, usersMin: 0, development: false };
    return findMarket(opened.database.query, { first: FIRST, last: FIRST + DAYS - 1 }, shown);
  };

  test('users that a gateway of before added are counted by the next part, with the days that they move', async () => {
    const before = await market();
    const later = await createLedger({ database: opened.database, now: () => (FIRST + DAYS) * DAY_MS });
    await change(`INSERT INTO user_days (day, account_hash, previous) VALUES (${FIRST + 1}, 77, -1)`);
    await change(`INSERT INTO user_days (day, account_hash, previous) VALUES (${FIRST + 7}, 77, ${FIRST + 1})`);
    await change(`INSERT INTO known_users (account_hash, wallet, since) VALUES (77, 1, ${FIRST + 1})`);
    expect(await market()).toEqual(before);
    await later.transfer({ id: 'any', from: 'treasury:test', to: 'escrow:a', amount: 1n, memo: '' });
    const release = { account: 'a', key: null, provider: 'p', end: 'settle', charge: 1, primitive: 'model' } as const;
    const used = { service: COUNTED_PRICE.service, prompt: 1, completion: 1, reasoning: 0 } as const;
    const at = (FIRST + DAYS) * DAY_MS;
    await makeCall(later, { id: 'last', ...release, ...used, firstByteMs: 1, durationMs: 1 }, at);
    await rollUp(at);
    await later.close();
    const after = await market();
    expect(after.activeUsers).toBe(before.activeUsers + 1);
    expect(after.knownUsers).toBe(before.knownUsers + 1);
    expect(after.knownWallets).toBe(before.knownWallets + 1);
    await change('DELETE FROM user_days WHERE account_hash = 77');
    await change('DELETE FROM known_users WHERE account_hash = 77');
    expect(await analytics()).toMatchObject({
      ok: false,
      detail: expect.stringContaining('counted otherwise') as string,
    });
  });

  test('the migration counts the users that are there', async () => {
    for (const undo of UNDONE) await change(undo);
    const { text } = loadMigrations().find(({ name }) => name === '0032_counts-of-users')!;
    for (const statement of text.replaceAll(/^--.*$/gm, '').split(';'))
      if (statement.trim() !== '') await change(statement);
    expect(await market()).toMatchObject({ activeUsers: ACCOUNTS.length, knownUsers: ACCOUNTS.length });
    expect(await analytics()).toMatchObject({ ok: true });
  });

  test('an audit tells a day that knows another day before it', async () => {
    expect(await analytics()).toMatchObject({ ok: true });
    await change(`UPDATE user_days SET previous = previous - 1 WHERE day = ${FIRST + 5}`);
    expect(await analytics()).toMatchObject({
      ok: false,
      detail: expect.stringContaining('2 active users with another day before it') as string,
    });
  });
});
