import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { COMPARE_TEMPORARY, compareSums, createRollUp, findMarket } from '#analytics';
import { audit, createLedger } from '#billing';
import { adHoc } from '../support/ad-hoc.ts';
import { COUNTED_PRICE, fund, makeCall } from '../support/counted-calls.ts';
import { ENGINES, openEngine, type OpenedEngine } from '../support/engines.ts';

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
        // oxlint-disable-next-line no-await-in-loop -- one moment after the other
        await makeCall(ledger, { ...call, ...used, ...took }, clock.now);
      }
      // oxlint-disable-next-line no-await-in-loop -- a part is added before the next one is there
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
          // oxlint-disable-next-line no-await-in-loop -- one after the other is as quick
          const { activeUsers } = await findMarket(opened.database.query, range, shown);
          expect(activeUsers, `${from} to ${to}, at least ${usersMin}`).toBe(active(from, to, usersMin));
        }
  });

  test('an audit tells a day that knows another day before it', async () => {
    const analytics = async () => {
      const also = { temporary: COMPARE_TEMPORARY, check: compareSums };
      return (await audit(opened.database, { overdueMs: null, also })).checks.at(-1)!;
    };
    expect(await analytics()).toMatchObject({ ok: true });
    await opened.database.query(adHoc(`UPDATE user_days SET previous = previous - 1 WHERE day = ${FIRST + 5}`));
    expect(await analytics()).toMatchObject({
      ok: false,
      detail: expect.stringContaining('2 active users with another day before it') as string,
    });
  });
});
