import { afterEach, expect, onTestFinished, test, vi } from 'vitest';
import { createBudgetNotices } from '../../src/gateway/webhooks/budget-notices.ts';
import { checkPlaces, linePlaces, runPlaces, uploadPlace } from '../../src/openai/batch-jobs/batch-places.ts';
import { createGuardedFetch } from '../../src/gateway/network/upstream/guarded-fetch.ts';
import type { JobPlace, Places } from '#wire';
import { adHoc } from '../support/ad-hoc.ts';
import { BOTH_ENGINES, openEngine, type EngineName } from '../support/engines.ts';
import { listenForNews } from '../gateway/webhooks/webhook-world.ts';

// A greedy account has all that it gets. A patient one has its turn before the rest of the greedy one.

afterEach(() => {
  vi.useRealTimers();
});

const NOTICE = adHoc(
  'INSERT INTO budget_notices (budget, spend_limit, percent, account, at, body, due_at, attempts) ' +
    "VALUES ($1, 1, 50, $2, $3, '{}', $3, 0)",
);

const BEGUN = adHoc('SELECT COUNT(*) AS count FROM budget_notices WHERE attempts > 0');

async function openNotices(engine: EngineName) {
  const opened = await openEngine(engine);
  const errors: unknown[] = [];
  const notices = createBudgetNotices({
    database: opened.database,
    fetch: createGuardedFetch({ allowPrivate: true }),
    secret: Buffer.alloc(32, 7),
    now: () => 1_000_000,
    everyMs: null,
    onNotice: () => {},
    onLost: () => {},
    onError: (error) => errors.push(error),
  });
  onTestFinished(async () => {
    await notices.close();
    await opened.dispose();
    expect(errors).toEqual([]);
  });
  return {
    notices,
    begun: async () => Number((await opened.database.query(BEGUN))[0]!['count']),
    async due(account: string, url: string, count: number, at: number) {
      await notices.webhooks.put(account, { url, secret: null });
      for (let n = 0; n < count; n += 1) await opened.database.query(NOTICE, [`${account}-${n}`, account, at + n]);
    },
  };
}

test('notices of budgets of many accounts, whose receiver does not answer, are so many at once', async () => {
  const { notices, due, begun } = await openNotices('sqlite');
  const silent = await listenForNews(() => {});
  for (let n = 0; n < 80; n += 1) await due(`account-${n}`, silent.url, 1, n);
  void notices.run();
  await silent.until(64);
  expect(await begun()).toBe(64);
});

test.each(BOTH_ENGINES)('notices of budgets, whose receiver does not answer: %s', async (engine) => {
  const { notices, due } = await openNotices(engine);
  const [silent, quick] = [await listenForNews(() => {}), await listenForNews()];
  await due('greedy', silent.url, 100, 1);
  await due('patient', quick.url, 6, 1_000);
  void notices.run();
  await quick.until(6);
  await silent.until(4);
  expect(silent.got).toHaveLength(4);
});

/** Takes all places that the accounts get. */
const takeAll = (places: Places, accounts: readonly string[], share?: string): JobPlace[] => {
  const taken: JobPlace[] = [];
  for (const account of accounts)
    for (;;) {
      const place = places.tryTake(account, share === undefined ? {} : { share });
      if (place === null) break;
      taken.push(place);
    }
  return taken;
};

test.each([
  { what: 'checks of batches', places: checkPlaces, ofOne: 4 },
  { what: 'batches that run', places: () => runPlaces(16), ofOne: 16 },
  {
    what: 'lines of batches',
    places: () => linePlaces({ linesAtOnce: 16, accountLinesAtOnce: 8 }),
    ofOne: 8,
  },
])('$what: a place is left for whoever comes later, with money or not', ({ places: make, ofOne }) => {
  const places = make();
  expect(takeAll(places, ['greedy'])).toHaveLength(ofOne);
  takeAll(places, ['second', 'third']);
  // Accounts without money, however many, get together what is left for one.
  const poor = Array.from({ length: 50 }, (_, n) => `poor-${n}`);
  expect(takeAll(places, poor, '').length).toBeLessThanOrEqual(ofOne);
  expect(places.tryTake('patient')).not.toBeNull();
});

test.each([
  { what: 'a line', ms: 60_000, places: () => linePlaces({ linesAtOnce: 2, accountLinesAtOnce: 2 }) },
  { what: 'a check', ms: 5_000, places: checkPlaces },
])('$what that takes long leaves its place', async ({ ms, places: make }) => {
  vi.useFakeTimers();
  const places = make();
  for (let n = 0; places.tryTake(`slow-${n}`) !== null; n += 1);
  const order: string[] = [];
  const wait = (account: string) => places.take(account).then(() => order.push(account));
  const waiting = [wait('greedy'), wait('greedy'), wait('patient')];
  await vi.advanceTimersByTimeAsync(ms - 1);
  expect(order).toEqual([]);
  await vi.advanceTimersByTimeAsync(1);
  await Promise.all(waiting.slice(0, 1));
  await vi.advanceTimersByTimeAsync(ms);
  await Promise.all(waiting);
  expect(order.slice(0, 2)).toEqual(['greedy', 'patient']);
});

test('uploads to a provider, and to one that does not take them', async () => {
  const never = new AbortController().signal;
  const order: string[] = [];
  const upload = (provider: string, account: string) =>
    uploadPlace(provider, account, never).then((leave) => {
      order.push(`${account} at ${provider}`);
      return leave!;
    });
  const stuck = await upload('stuck', 'greedy');
  const first = await upload('busy', 'greedy');
  const rest = [upload('busy', 'greedy'), upload('busy', 'greedy'), upload('stuck', 'greedy')];
  const patient = upload('busy', 'patient');
  const other = await upload('other', 'patient');
  first();
  (await rest[0]!)();
  (await patient)();
  (await rest[1]!)();
  expect(order).toEqual([
    'greedy at stuck',
    'greedy at busy',
    'patient at other',
    'greedy at busy',
    'patient at busy',
    'greedy at busy',
  ]);
  stuck();
  other();
  (await rest[2]!)();
});
