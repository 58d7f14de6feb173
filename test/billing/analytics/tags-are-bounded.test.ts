import { afterEach, expect, test } from 'vitest';
import { COMPARE_TEMPORARY, compareSums, createRollUp } from '#analytics';
import { audit, createLedger } from '#billing/compose';
import { adHoc } from '../../support/ad-hoc.ts';
import { fund, makeCall } from '../../support/counted-calls.ts';
import { ENGINES, openEngine, type OpenedEngine } from '../../support/engines.ts';

// The caller chooses the values of tags, so calls that cost nothing must not make rows without a bound.

const NOW = 20_000 * 86_400_000;
const ROWS = adHoc(
  'SELECT account, tag, CAST(COUNT(*) AS BIGINT) AS some, CAST(SUM(requests) AS BIGINT) AS calls FROM tag_days GROUP BY account, tag ORDER BY account, tag',
);

let opened: OpenedEngine;
afterEach(() => opened.dispose());

test.each(ENGINES)('%s: a thousand rows a day of calls without a charge, and all that are charged', async (engine) => {
  opened = await openEngine(engine);
  const { database } = opened;
  const ledger = await createLedger({ database, now: () => NOW });
  await fund(database, ledger, ['acme', 'poor']);
  const rollUp = createRollUp({
    database,
    now: Date.now,
    everyMs: null,
    callsMax: 20_000,
    onError: (error) => expect.fail(String(error)),
  });
  let made = 0;
  const calls = async (
    account: string,
    count: number,
    charge: number,
    tags: (at: number) => Record<string, string>,
  ) => {
    await Promise.all(
      Array.from({ length: count }, (_, at) =>
        makeCall(
          ledger,
          {
            id: `call-${made++}`,
            account,
            key: null,
            primitive: 'model',
            service: 's/one',
            provider: 'p1',
            end: 'settle',
            charge,
            prompt: 1,
            completion: 1,
            reasoning: 0,
            firstByteMs: 1,
            durationMs: 1,
            tags: tags(at),
          },
          NOW,
        ),
      ),
    );
    await rollUp.run();
  };
  const rows = async () =>
    (await database.query(ROWS)).map((row) => [row['account'], row['tag'], Number(row['some']), Number(row['calls'])]);

  await calls('poor', 700, 0, (at) => ({ run: `a${at}` }));
  await calls('poor', 700, 0, (at) => ({ run: `b${at}` }));
  expect(await rows()).toEqual([['poor', 'run', 1_000, 1_000]]);
  // What has a row is counted in it, and what costs has one.
  await calls('poor', 5, 0, () => ({ run: 'a1' }));
  await calls('poor', 3, 7, (at) => ({ run: `paid${at}` }));
  await calls('acme', 1_200, 7, (at) => ({ run: `c${at}` }));
  expect(await rows()).toEqual([
    ['acme', 'run', 1_200, 1_200],
    ['poor', 'run', 1_003, 1_008],
  ]);
  await rollUp.close();
  const told = await audit(database, { overdueMs: null, also: { temporary: COMPARE_TEMPORARY, check: compareSums } });
  expect(told.checks.filter(({ ok }) => !ok)).toEqual([]);
});
