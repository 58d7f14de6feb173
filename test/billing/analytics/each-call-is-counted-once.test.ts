import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  COMPARE_TEMPORARY,
  compareSums,
  createOldUsage,
  createRollUp,
  findUsage,
  findZonedUsage,
  PERIODS,
  type TimeZone,
  timeZoneOf,
  UTC,
  type UsageGroup,
  type UsageQuery,
  type UsageRow,
} from '#analytics';
import { audit, createLedger, expireAll } from '#billing/compose';
import type { Ledger } from '#billing';
import { DatabaseError, type Database, type OpenDatabase } from '#store';
import { adHoc } from '../../support/ad-hoc.ts';
import { fund, makeCall, type CountedCall } from '../../support/counted-calls.ts';
import { ENGINES, openEngine, type OpenedEngine } from '../../support/engines.ts';

const RUNS = process.env['TOLLGATE_DEEP'] === '1' ? 300 : 8;
const DAY_MS = 86_400_000;
const fail = (error: unknown): never => {
  throw error;
};
const START = 20_000 * DAY_MS;
const ACCOUNTS = ['acme', 'eip155:0xabc', 'tollgate:local:dev', 'tollgate:gateway'];

type Step =
  | { readonly do: 'call'; readonly call: Omit<CountedCall, 'id'> }
  | { readonly do: 'wait'; readonly ms: number }
  | { readonly do: 'expire' }
  | { readonly do: 'restart' }
  | { readonly do: 'rebuild' }
  | { readonly do: 'roll up'; readonly by: number; readonly fault: Fault; readonly most: number };
/** What becomes of the transaction of a roll-up: it is killed before or after, or another one was faster. */
type Fault = 'none' | 'before' | 'after' | 'both';

const call = fc.record({
  account: fc.constantFrom(...ACCOUNTS),
  key: fc.constantFrom(null, 'a'.repeat(64), 'b'.repeat(64)),
  primitive: fc.constantFrom('model', 'tool', 'agent', 'image', 'video'),
  service: fc.constantFrom('s/one', 's/two', 'ä "quoted" \\'),
  provider: fc.constantFrom('p1', 'p2'),
  end: fc.constantFrom('settle', 'settle', 'settle', 'release', 'continue', 'run', 'expire', 'hold'),
  charge: fc.integer({ min: 0, max: 1_000 }),
  prompt: fc.integer({ min: 0, max: 5_000 }),
  completion: fc.integer({ min: 0, max: 5_000 }),
  reasoning: fc.integer({ min: 0, max: 100 }),
  firstByteMs: fc.integer({ min: 0, max: 3_000 }),
  durationMs: fc.integer({ min: 0, max: 90_000 }),
  tags: fc.constantFrom({}, { team: 'red' }, { team: 'blue', run: '7' }, { run: '8' }),
} satisfies Record<keyof Omit<CountedCall, 'id'>, fc.Arbitrary<unknown>>);

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 8, arbitrary: call.map((made) => ({ do: 'call' as const, call: made as Omit<CountedCall, 'id'> })) },
  { weight: 2, arbitrary: fc.integer({ min: 1, max: 2 * DAY_MS }).map((ms) => ({ do: 'wait' as const, ms })) },
  { weight: 1, arbitrary: fc.constant({ do: 'expire' as const }) },
  { weight: 1, arbitrary: fc.constant({ do: 'restart' as const }) },
  { weight: 1, arbitrary: fc.constant({ do: 'rebuild' as const }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('roll up' as const),
      by: fc.constantFrom(0, 1),
      fault: fc.constantFrom<Fault>('none', 'none', 'before', 'after', 'both'),
      most: fc.constantFrom(1, 3, 20_000),
    }),
  },
);

let opened: OpenedEngine;
let gateways: readonly OpenDatabase[];
const open = async (engine: (typeof ENGINES)[number]) => {
  opened = await openEngine(engine);
  // The embedded database has one process: there both roll-ups are its own.
  gateways = [opened.database, engine === 'postgres' ? await opened.again() : opened.database];
};

/** A database whose transactions break as they would if the process or the connection died. */
function faulty(database: Database, fault: Fault, meanwhile: () => Promise<void>): Database {
  return {
    engine: database.engine,
    query: (statement, params) => database.query(statement, params),
    snapshot: (run, temporary) => database.snapshot(run, temporary),
    close: () => database.close(),
    async batch(steps) {
      const killed = new DatabaseError('the test broke it', { code: 'broken', unavailable: true });
      if (fault === 'before') throw killed;
      if (fault === 'both') await meanwhile();
      const rows = await database.batch(steps);
      if (fault === 'after') throw killed;
      return rows;
    },
  };
}

const rollUp = async (database: Database, callsMax: number) => {
  const errors: unknown[] = [];
  const own = createRollUp({
    database,
    now: Date.now,
    everyMs: null,
    callsMax,
    onError: (error) => errors.push(error),
  });
  await own.run();
  await own.close();
  return errors;
};

/** A call that ended, as a sum has to show it. */
interface Ended {
  readonly call: CountedCall;
  readonly at: number;
  readonly isSettled: boolean;
}

const also = { temporary: COMPARE_TEMPORARY, check: compareSums };
/** As the audit finds them, also while the sums are behind. */
const differences = async () =>
  (await audit(opened.database, { overdueMs: null, also })).checks.filter(({ ok }) => !ok);

async function play(steps: readonly Step[]): Promise<readonly Ended[]> {
  const [database] = gateways as [OpenDatabase];
  let now = START;
  const clock = { now: () => now };
  let ledger: Ledger = await createLedger({ database, ...clock });
  await fund(database, ledger, ACCOUNTS);
  const ended: Ended[] = [];
  const held = new Map<string, CountedCall>();
  for (const [index, each] of steps.entries()) {
    if (each.do === 'call') {
      const made: CountedCall = { ...each.call, id: `call-${index}` };
      await makeCall(ledger, made, now);
      if (made.end === 'settle' || made.end === 'release')
        ended.push({ call: made, at: now, isSettled: made.end === 'settle' });
      if (made.end === 'expire') held.set(made.id, made);
    } else if (each.do === 'wait') now += each.ms;
    else if (each.do === 'expire') {
      await expireAll(ledger, now);
      for (const made of held.values()) ended.push({ call: made, at: now, isSettled: false });
      held.clear();
    } else if (each.do === 'restart') {
      // On PostgreSQL the next one writes a chain of its own.
      await ledger.close();
      ledger = await createLedger({ database, ...clock });
    } else if (each.do === 'rebuild') {
      const anew = createRollUp({ database, now: Date.now, everyMs: null, callsMax: 2, onError: fail });
      await anew.rebuild();
      await anew.run();
      await anew.close();
    } else {
      const other = gateways[1 - each.by]!;
      const meanwhile = async () => void (await rollUp(other, each.most));
      await rollUp(faulty(gateways[each.by]!, each.fault, meanwhile), each.most);
      expect(await differences()).toEqual([]);
    }
  }
  await ledger.close();
  return ended.filter(({ call: { account } }) => account !== 'tollgate:gateway');
}

const dayOf = ({ at }: Ended) => Math.floor(at / DAY_MS);
/** What the calls of each group add up to, in the order of the groups. */
function grouped(ended: readonly Ended[], keyOf: (each: Ended) => readonly unknown[], withFee: boolean) {
  const rows = new Map<string, bigint[]>();
  for (const each of ended) {
    const { call, isSettled } = each;
    const key = JSON.stringify(keyOf(each));
    const adds = isSettled
      ? [1n, 0n, BigInt(call.charge), ...(withFee ? [fees.get(call.id)!] : []), ...tokens(call)]
      : [0n, 1n, 0n, ...(withFee ? [0n] : []), 0n, 0n, 0n];
    rows.set(
      key,
      (rows.get(key) ?? adds.map(() => 0n)).map((sum, index) => sum + adds[index]!),
    );
  }
  return [...rows].map(([key, sums]) => `${key} ${sums.join(',')}`).sort();
}
const tokens = ({ prompt, completion, reasoning }: CountedCall) => [prompt, completion, reasoning].map(BigInt);

/** Rounded by chance, so it is read from the ledger. */
let fees: ReadonlyMap<string, bigint>;
const FEES = adHoc('SELECT id, fee FROM locks');

async function rowsOf(text: string, keys: number) {
  const rows = await opened.database.query(adHoc(text));
  const plain = (value: unknown) => (typeof value === 'bigint' ? Number(value) : value);
  return rows
    .map((row) => Object.values(row))
    .map((values) => `${JSON.stringify(values.slice(0, keys).map(plain))} ${values.slice(keys).join(',')}`)
    .sort();
}

async function expectCounted(ended: readonly Ended[]): Promise<void> {
  fees = new Map((await opened.database.query(FEES)).map(({ id, fee }) => [id as string, fee as bigint]));
  const development = ({ call: { account } }: Ended) => (account === 'tollgate:local:dev' ? 1 : 0);
  const served = ({ call, isSettled }: Ended) => [call.service, isSettled ? call.provider : ''];
  const FIGURES = 'prompt, completion, reasoning';
  expect(
    await rowsOf(
      `SELECT account, day, key, primitive, service, provider, requests, failed, charged, fee, ${FIGURES} FROM usage_days`,
      6,
    ),
  ).toEqual(
    grouped(
      ended,
      (each) => [each.call.account, dayOf(each), each.call.key ?? '', each.call.primitive, ...served(each)],
      true,
    ),
  );
  expect(
    await rowsOf(
      `SELECT day, development, primitive, service, provider, requests, failed, charged, ${FIGURES} FROM service_days`,
      5,
    ),
  ).toEqual(grouped(ended, (each) => [dayOf(each), development(each), each.call.primitive, ...served(each)], false));
  expect(
    await rowsOf(`SELECT day, development, primitive, requests, failed, charged, ${FIGURES} FROM public_days`, 3),
  ).toEqual(grouped(ended, (each) => [dayOf(each), development(each), each.call.primitive], false));
  const active = new Set(
    ended.filter(({ isSettled }) => isSettled).map((each) => `${dayOf(each)} ${each.call.account}`),
  );
  expect(await rowsOf('SELECT COUNT(*) FROM user_days', 1)).toEqual([`[${active.size}] `]);
  const known = new Set(ended.map((each) => each.call.account));
  expect(await rowsOf('SELECT COUNT(*), CAST(SUM(wallet) AS BIGINT) FROM known_users WHERE since > 0', 1)).toEqual([
    `[${known.size}] ${known.size === 0 ? '' : known.has('eip155:0xabc') ? 1 : 0}`,
  ]);
  const timed = ended.filter(({ call: { firstByteMs }, isSettled }) => isSettled && firstByteMs > 0).length;
  expect(
    await rowsOf(`SELECT CAST(COALESCE(SUM(calls), 0) AS BIGINT) FROM service_times WHERE measure = 'first_byte'`, 1),
  ).toEqual([`[${timed}] `]);
}

/** How an operator may group the calls of all accounts, each with and without the tag. */
const GROUPINGS: readonly (readonly UsageGroup[])[] = [
  [],
  ['account'],
  ['month'],
  ['month', 'account'],
  ['week', 'model'],
  ['day', 'account', 'key'],
  ['provider', 'primitive'],
  ['day', 'account', 'model', 'key', 'provider', 'primitive'],
];
const ZONES = [UTC, timeZoneOf('Asia/Kathmandu')!];
const RANGE = { first: START / DAY_MS - 1, last: START / DAY_MS + 200 };

async function expectGrouped(ended: readonly Ended[]): Promise<void> {
  const charged = await rowsOf(
    "SELECT CAST(COALESCE(SUM(charged), 0) AS BIGINT) FROM locks WHERE account <> 'tollgate:gateway'",
    0,
  );
  for (const zone of ZONES)
    for (const groups of GROUPINGS)
      for (const tag of [undefined, 'team']) {
        const rows = await expectRows(ended, { account: null, range: RANGE, groups, tag }, zone);
        expect([`[] ${rows.reduce((sum, row) => sum + row.charged, 0n)}`]).toEqual(charged);
      }
}

/** An account's sums by month of another zone: complete also while the sums of days are behind, or gone. */
const expectOwnMonths = (ended: readonly Ended[]) =>
  expectRows(
    ended.filter(({ call: { account } }) => account === ACCOUNTS[0]),
    { account: ACCOUNTS[0]!, range: RANGE, groups: ['month', 'model'] },
    ZONES[1]!,
  );

async function expectRows(ended: readonly Ended[], question: UsageQuery, zone: TimeZone): Promise<readonly UsageRow[]> {
  const { groups, tag } = question;
  const answer = await opened.database.snapshot('test', (query) =>
    zone === UTC ? findUsage(query, question) : findZonedUsage(query, question, zone),
  );
  if (answer === null || answer === 'many') throw new Error('there are too few calls for this');
  const { rows } = answer;
  const period = (['day', 'week', 'month'] as const).find((group) => groups.includes(group));
  const of = (group: UsageGroup, value: string) => (groups.includes(group) ? value : '');
  const keyOf = ({ call, at, isSettled }: Ended) => [
    period === undefined ? 0 : PERIODS[period](zone.dayAt(at)),
    of('account', call.account),
    of('model', call.service),
    of('key', call.key ?? ''),
    of('provider', isSettled ? call.provider : ''),
    of('primitive', call.primitive),
    tag === undefined ? '' : (call.tags?.[tag] ?? ''),
  ];
  expect(
    rows
      .map((row) => {
        const key = [row.day, row.account, row.model, row.key, row.provider, row.primitive, row.tag];
        const sums = [row.requests, row.failed, row.charged, row.prompt, row.completion, row.reasoning];
        return `${JSON.stringify(key)} ${sums.join(',')}`;
      })
      .sort(),
  ).toEqual(grouped(ended, keyOf, false));
  return rows;
}

describe.each(ENGINES)('%s', (engine) => {
  beforeEach(() => open(engine));
  afterEach(() => opened.dispose());

  test('whatever is killed, and whoever else adds them up', { timeout: 3_600_000 }, async () => {
    await fc.assert(
      fc
        .asyncProperty(fc.array(step, { minLength: 1, maxLength: 60, size: 'max' }), async (steps) => {
          const ended = await play(steps);
          // On PostgreSQL each start begins another journal, and the sums may have one of them and not the other.
          if (engine === 'sqlite') await expectOwnMonths(ended);
          expect(await rollUp(gateways[0]!, 20_000)).toEqual([]);
          await expectCounted(ended);
          await expectGrouped(ended);
          expect(await differences()).toEqual([]);
          const old = createOldUsage({ database: opened.database, now: () => START + 5 * DAY_MS, days: 5 });
          while ((await old.sweep(10)) === 10);
          await expectOwnMonths(ended);
        })
        .afterEach(async () => {
          await opened.dispose();
          await open(engine);
        }),
      { numRuns: RUNS },
    );
  });
});
