import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ENGINES } from '../support/engines.ts';
import { atThisLoad } from '../support/at-this-load.ts';
import { someOf } from '../support/some-of.ts';
import { focusFaults } from './focus-rules.ts';
import { FIRST, LAST, liveThreeMonths, MONTHS, type ChargedCall, type ThreeMonths } from './three-months.ts';

// Whatever happened in three months, all sums of all groups, statements and exports are the ledger's, in each zone.

const DEEP = process.env['TOLLGATE_DEEP'] === '1';
const SEED = Number(process.env['SEED'] ?? 60);
const SEEDS = DEEP ? Array.from({ length: 8 }, (_, index) => SEED + index) : [SEED];
/** The most hours between two acts. */
const HOURS = DEEP ? 8 : 30;

/** With summer time, with halves and quarters of an hour, and with a day that begins at 01:00. */
const ALL_ZONES = [
  'UTC',
  'Europe/Berlin',
  'America/New_York',
  'Asia/Kathmandu',
  'Australia/Lord_Howe',
  'Africa/Cairo',
  'Pacific/Chatham',
  'America/Santiago',
];
const ZONES = someOf(ALL_ZONES, 2);

interface Row {
  readonly [group: string]: string | number | null;
  readonly cost_micro_usdc: number;
}
interface Statement {
  readonly opening_micro_usdc: number;
  readonly closing_micro_usdc: number;
  readonly charged_micro_usdc: number;
  readonly charged_calls: number;
  readonly movements: readonly {
    readonly at: string;
    readonly date: string;
    readonly kind: string;
    readonly id: string | null;
    readonly calls: number;
    readonly tags: Readonly<Record<string, string>>;
    readonly amount_micro_usdc: number;
    readonly balance_micro_usdc: number;
  }[];
}

/** The date in a zone, by another way than the gateway's. */
const dateIn = (zone: string, at: number) =>
  new Intl.DateTimeFormat('en-CA', { timeZone: zone, year: 'numeric', month: '2-digit', day: '2-digit' }).format(at);

const monday = (date: string) => {
  const at = Date.parse(date);
  return new Date(at - ((new Date(at).getUTCDay() + 6) % 7) * 86_400_000).toISOString().slice(0, 10);
};
/** The groups of time: the member of a row, and its value for a date. */
const PERIODS = {
  day: ['date', (date: string) => date],
  week: ['week', monday],
  month: ['month', (date: string) => date.slice(0, 7)],
} as const;
/** The other groups, with the member of a row and its value for a call. */
const GROUPS: Readonly<Record<string, readonly [member: string, of: (call: ChargedCall) => string | null]>> = {
  model: ['model', ({ model }) => model],
  key: ['key', ({ key }) => key],
  member: ['member', ({ member }) => member],
  provider: ['provider', ({ provider }) => provider],
  primitive: ['primitive', ({ primitive }) => primitive],
  'tag:team': ['tag', ({ tags }) => tags['team'] ?? null],
  'tag:feature': ['tag', ({ tags }) => tags['feature'] ?? null],
  'tag:end_user': ['tag', ({ tags }) => tags['end_user'] ?? null],
};

const ofSameSum = <T>(items: readonly T[], nameOf: (item: T) => string, costOf: (item: T) => number) => {
  const sums: Record<string, number> = {};
  for (const item of items) sums[nameOf(item)] = (sums[nameOf(item)] ?? 0) + costOf(item);
  return sums;
};

type FocusRow = Readonly<Record<string, string | null>>;

/** Lines of RFC 4180 as objects by the names of the first. An empty cell is null. */
function parseCsv(text: string): readonly FocusRow[] {
  const lines = text
    .trimEnd()
    .split('\r\n')
    .map((line) =>
      [...line.matchAll(/("(?:[^"]|"")*"|[^,]*)(?:,|$)/g)]
        .slice(0, -1)
        .map(([, cell]) => (cell!.startsWith('"') ? cell!.slice(1, -1).replaceAll('""', '"') : cell!)),
    );
  const [names, ...rows] = lines;
  return rows.map((cells) => Object.fromEntries(names!.map((name, index) => [name, cells[index] || null])));
}

const microOf = (usd: string) => Math.round(Number(usd) * 1e6);

const CASES = ENGINES.flatMap((engine) => SEEDS.map((seed) => [engine, seed] as const));

describe.each(CASES)('three months, on %s, of seed %i', (engine, seed) => {
  let world: ThreeMonths;
  beforeAll(
    async () => {
      world = await liveThreeMonths(engine, seed, HOURS);
    },
    atThisLoad(DEEP ? 600_000 : 180_000),
  );
  afterAll(() => world.close());

  const admin = async (path: string) => {
    const { origin, adminKey } = world.spine;
    const answer = await fetch(`${origin}/admin/v1${path}`, { headers: { authorization: `Bearer ${adminKey}` } });
    return { status: answer.status, body: (await answer.json()) as { readonly data: never } };
  };
  const own = async <T>(path: string, { key } = world.accounts[0]!) => {
    const answer = await world.spine.get(path, { authorization: `Bearer ${key}` });
    const body = (await answer.json()) as T;
    expect([path, answer.status, answer.status === 200 ? '' : body]).toEqual([path, 200, '']);
    return body;
  };
  const callsOf = (account: string) => world.calls.filter((call) => call.account === account);
  const movementsOf = (account: string) => world.movements.filter((each) => each.account === account);
  const sumOf = (calls: readonly ChargedCall[]) => calls.reduce((sum, { cost }) => sum + cost, 0);

  it('is of all kinds', () => {
    const of = (primitive: string) => world.calls.filter((call) => call.primitive === primitive).length;
    expect(Math.min(...['model', 'tool', 'agent', 'image', 'video'].map(of))).toBeGreaterThan(0);
    expect(world.calls.length).toBeGreaterThan(80);
    expect(new Set(world.calls.map(({ member }) => member)).size).toBe(3);
    expect(world.movements.filter(({ id }) => id.startsWith('refund:')).length).toBeGreaterThan(5);
    expect(world.kills).toBeGreaterThan(3);
  });

  it('each sum of each group is that of its calls, in each zone', async () => {
    for (const owner of world.accounts) {
      const calls = callsOf(owner.account);
      const { data } = await own<{ data: { total_usage: number } }>('/credits', owner);
      expect(Math.round(data.total_usage * 1e6)).toBe(sumOf(calls));
      const days = `start_date=${FIRST}&end_date=${LAST}`;
      const total = async () => (await own<{ totals: Row }>(`/analytics/own?${days}`, owner)).totals.cost_micro_usdc;
      await expect.poll(total, { timeout: atThisLoad(20_000) }).toBe(sumOf(calls));
      for (const zone of ZONES)
        for (const [period, [member, periodOf]] of Object.entries(PERIODS))
          for (const [group, [column, valueOf]] of [['', null] as const, ...Object.entries(GROUPS)].map(
            ([name, of]) => [name, of ?? ['', () => '']] as const,
          )) {
            const groups = [period, ...(group === '' ? [] : [group])].join(',');
            const answer = await own<{ data: Row[]; totals: Row }>(
              `/analytics/own?${days}&group_by=${groups}&time_zone=${zone}`,
              owner,
            );
            const expected = ofSameSum(
              calls,
              (call) => `${periodOf(dateIn(zone, call.at))} ${valueOf(call)}`,
              ({ cost }) => cost,
            );
            const shown = ofSameSum(
              answer.data.filter((row) => row.cost_micro_usdc !== 0),
              (row) => `${row[member]} ${column === '' ? '' : row[column]}`,
              (row) => row.cost_micro_usdc,
            );
            expect([zone, groups, shown]).toEqual([zone, groups, expected]);
            expect([zone, groups, answer.totals.cost_micro_usdc]).toEqual([zone, groups, sumOf(calls)]);
          }
    }
  });

  it('has statements whose movements are all of them, and whose balances follow from each other', async () => {
    for (const owner of world.accounts) {
      const [calls, moved] = [callsOf(owner.account), movementsOf(owner.account)];
      const { data } = await own<{ data: { total_credits: number; total_usage: number } }>('/credits', owner);
      const balance = Math.round(data.total_credits * 1e6) - Math.round(data.total_usage * 1e6);
      for (const zone of ZONES) {
        let before = 0;
        for (const month of MONTHS) {
          const path = `/statements/${month}?time_zone=${zone}`;
          const { data: one } = await own<{ data: Statement }>(path, owner);
          const { data: daily } = await own<{ data: Statement }>(`${path}&calls=daily`, owner);
          const inMonth = (each: { readonly at: number }) => dateIn(zone, each.at).startsWith(month);
          const charged = calls.filter(inMonth);
          expect([zone, month, one.opening_micro_usdc]).toEqual([zone, month, before]);
          expect(one.charged_micro_usdc).toBe(sumOf(charged));
          const shown = one.movements.filter(({ kind }) => kind === 'call');
          expect(new Set(shown.map(({ id }) => id))).toEqual(new Set(charged.map(({ id }) => id)));
          expect(shown).toHaveLength(charged.length);
          expect(shown.map(({ at }) => at)).toEqual(shown.map(({ at }) => at).sort());
          const byDay = (of: Statement) =>
            ofSameSum(
              of.movements,
              ({ date }) => date,
              (each) => each.amount_micro_usdc,
            );
          expect(byDay(one)).toEqual(byDay(daily));
          const expected = ofSameSum(
            [...charged.map(({ at, cost }) => ({ at, amount: -cost })), ...moved.filter(inMonth)],
            (each) => dateIn(zone, each.at),
            ({ amount }) => amount,
          );
          expect(byDay(one)).toEqual(expected);
          let running = one.opening_micro_usdc;
          for (const movement of one.movements)
            expect(movement.balance_micro_usdc).toBe((running += movement.amount_micro_usdc));
          expect(one.closing_micro_usdc).toBe(running);
          expect([daily.opening_micro_usdc, daily.closing_micro_usdc]).toEqual([before, running]);
          before = running;
        }
        // The last movement is in November or, in zones before UTC, in December.
        const later = [...calls.map(({ at, cost }) => ({ at, amount: -cost })), ...moved]
          .filter((each) => dateIn(zone, each.at).startsWith('2026-12'))
          .reduce((sum, { amount }) => sum + amount, 0);
        expect(before + later).toBe(balance);
      }
    }
  });

  it('has the same statement for the operator, and as a file with both balances', async () => {
    const mine = await own<{ data: Statement }>('/statements/2026-10?time_zone=Asia/Kathmandu');
    const theirs = await admin(`/accounts/${world.accounts[0]!.account}/statements/2026-10?time_zone=Asia/Kathmandu`);
    expect(theirs).toEqual({ status: 200, body: mine });
    const { key } = world.accounts[0]!;
    const file = await world.spine.get('/statements/2026-10?time_zone=Asia/Kathmandu&format=csv', {
      authorization: `Bearer ${key}`,
    });
    expect(file.headers.get('content-disposition')).toBe('attachment; filename="statement-2026-10.csv"');
    const lines = (await file.text()).trimEnd().split('\r\n');
    expect(lines).toHaveLength(mine.data.movements.length + 3);
    const lastCell = (line: string) => Math.round(Number(line.split(',').at(-1)) * 1e6);
    expect([lastCell(lines[1]!), lastCell(lines.at(-1)!)]).toEqual([
      mine.data.opening_micro_usdc,
      mine.data.closing_micro_usdc,
    ]);
  });

  it('exports FOCUS 1.2 whose billed costs are the charges less the refunds, of an account and of all', async () => {
    const csv = async (answer: Response) => {
      expect(answer.status).toBe(200);
      return parseCsv(await answer.text());
    };
    const operator = async (path: string) => {
      const { origin, adminKey } = world.spine;
      return csv(await fetch(`${origin}/admin/v1${path}`, { headers: { authorization: `Bearer ${adminKey}` } }));
    };
    const billed = (rows: readonly FocusRow[]) => rows.reduce((sum, row) => sum + microOf(row['BilledCost']!), 0);
    for (const { account, key } of world.accounts) {
      let sum = 0;
      for (const month of MONTHS) {
        const path = `/statements/${month}/focus`;
        const rows = await csv(await world.spine.get(path, { authorization: `Bearer ${key}` }));
        const faults = rows.flatMap((row, index) => focusFaults(row).map((fault) => `${month} row ${index}: ${fault}`));
        expect(faults).toEqual([]);
        const use = Object.groupBy(
          rows.filter((row) => row['ChargeCategory'] === 'Usage'),
          (row) => row['x_CallId']!,
        );
        const calls = callsOf(account).filter((each) => dateIn('UTC', each.at).startsWith(month));
        expect(Object.keys(use).sort()).toEqual(calls.map(({ id }) => id).sort());
        for (const { id, cost, tags } of calls) {
          expect([id, billed(use[id]!)]).toEqual([id, cost]);
          for (const row of use[id]!) expect(JSON.parse(row['Tags']!)).toEqual(tags);
        }
        expect(await operator(`/accounts/${account}${path}`)).toEqual(
          (await operator(`/focus/${month}`)).filter((row) => row['BillingAccountId'] === account),
        );
        sum += billed(rows);
      }
      const refunds = movementsOf(account).filter(({ id }) => id.startsWith('refund:'));
      expect(sum).toBe(sumOf(callsOf(account)) - refunds.reduce((all, { amount }) => all + amount, 0));
    }
  });

  it('refuses what is no month or no time zone, and a key that may not see the account', async () => {
    const refused = async (path: string, with_ = world.accounts[0]!.key) => {
      const answer = await world.spine.get(path, { authorization: `Bearer ${with_}` });
      return [answer.status, ((await answer.json()) as { error: { message: string } }).error.message];
    };
    expect(await refused('/statements/2026-13')).toEqual([400, expect.stringContaining('such as 2026-10')]);
    expect(await refused('/statements/2027-01')).toEqual([400, expect.stringContaining('has not begun')]);
    for (const zone of ['Europe/Atlantis', '%2B05:45', 'x', '../etc'])
      expect(await refused(`/statements/2026-10?time_zone=${zone}`)).toEqual([400, expect.stringContaining('IANA')]);
    expect(await refused('/analytics/own?time_zone=Mars')).toEqual([400, expect.stringContaining('IANA')]);
    const { account } = world.accounts[0]!;
    const limited = await world.spine.app.keys.create({ account, label: 'x', kind: 'live', limit: 5n });
    expect((await refused('/statements/2026-10', limited!.text))[0]).toBe(403);
  });

  it('passes the audit', async () => {
    expect(await world.spine.faults()).toEqual([]);
  });
});
