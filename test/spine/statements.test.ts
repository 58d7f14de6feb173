import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { ENGINES } from '../support/engines.ts';
import { freshDatabase } from '../support/fresh-database.ts';
import { newDataDirectory } from '../support/data-directory.ts';
import { atThisLoad } from '../support/at-this-load.ts';
import { focusFaults } from './focus-rules.ts';
import { ask, modelBlock, startSpine, UNHURRIED, type Generation, type Spine } from '../support/spine.ts';

// Random calls, tags, refunds and restarts over three months: all sums of all groups are the ledger's.

/** Zones with summer time, with halves and quarters of an hour, and with a day that begins at 01:00. */
const ZONES = [
  'UTC',
  'Europe/Berlin',
  'America/New_York',
  'Asia/Kathmandu',
  'Australia/Lord_Howe',
  'Africa/Cairo',
  'Pacific/Chatham',
  'America/Santiago',
];
const MONTHS = ['2026-09', '2026-10', '2026-11'];

interface Made {
  readonly id: string;
  readonly cost: number;
  readonly at: number;
  readonly tags: Readonly<Record<string, string>>;
}
interface Row {
  readonly [group: string]: string | number | null;
  readonly cost_micro_usdc: number;
  readonly requests: number;
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

/** Numbers from 0 to below 1, the same for a seed. */
function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** The date in a zone, by another way than the gateway's. */
const dateIn = (zone: string, at: number) =>
  new Intl.DateTimeFormat('en-CA', { timeZone: zone, year: 'numeric', month: '2-digit', day: '2-digit' }).format(at);

const monday = (date: string) => {
  const at = Date.parse(date);
  return new Date(at - ((new Date(at).getUTCDay() + 6) % 7) * 86_400_000).toISOString().slice(0, 10);
};
const PERIODS = {
  day: (date: string) => date,
  week: monday,
  month: (date: string) => date.slice(0, 7),
} as const;
const MEMBERS = { day: 'date', week: 'week', month: 'month' } as const;

const ofSameSum = <T>(items: readonly T[], nameOf: (item: T) => string, costOf: (item: T) => number) => {
  const sums: Record<string, number> = {};
  for (const item of items) sums[nameOf(item)] = (sums[nameOf(item)] ?? 0) + costOf(item);
  return sums;
};

/** Lines of RFC 4180 as objects by the names of the first. An empty cell is null. */
function parseCsv(text: string): readonly Readonly<Record<string, string | null>>[] {
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

describe.each(ENGINES)('three months, on %s', (engine) => {
  let spine: Spine;
  let drop = async () => {};
  let account: string;
  let key: string;
  let at = Date.parse('2026-09-03T22:10:00Z');
  const now = () => at;
  const random = randomOf(Number(process.env['SEED'] ?? 60));
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)]!;
  const dataDir = newDataDirectory();
  const made: Made[] = [];
  /** What else moved the balance. */
  const moved: { readonly at: number; readonly amount: number }[] = [];
  let databaseUrl: string | undefined;
  // Costs of the second model are rounded.
  const odd = modelBlock({ name: 'odd/model', provider: 'Odd', url: '{provider}', prompt: 0.37, completion: 1.913 });
  const toml = `${UNHURRIED}\n[analytics]\nevery_ms = 50\n${odd}`;
  const start = async () => {
    spine = await startSpine({ toml, now, dataDir, ...(databaseUrl === undefined ? {} : { databaseUrl }) });
  };

  const admin = async (method: string, path: string, body?: object) => {
    const answer = await fetch(`${spine.origin}/admin/v1${path}`, {
      method,
      headers: { authorization: `Bearer ${spine.adminKey}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return { status: answer.status, body: (await answer.json()) as { readonly data: never } };
  };
  const own = async <T>(path: string) => {
    const answer = await spine.get(path, { authorization: `Bearer ${key}` });
    const body = (await answer.json()) as T;
    expect([path, answer.status, answer.status === 200 ? '' : body]).toEqual([path, 200, '']);
    return body;
  };

  beforeAll(async () => {
    if (engine === 'postgres') {
      const fresh = await freshDatabase(inject('postgresUrl'));
      drop = fresh.drop;
      databaseUrl = fresh.url;
    }
    await start();
    ({ key, account } = await spine.tenant('acme', '50'));
    moved.push({ at, amount: 50_000_000 });
    while (at < Date.parse('2026-11-30T20:00:00Z')) {
      const dice = random();
      if (dice < 0.78) await call();
      else if (dice < 0.86) await credit();
      else if (dice < 0.95) await refund();
      else if (dice < 0.97) await restart();
      // Mostly hours, sometimes just around a midnight of one of the zones.
      at += Math.floor(random() * 20 * 3_600_000);
      if (random() < 0.3) at = Math.ceil(at / 900_000) * 900_000 + pick([-1, 0, 1]);
    }
  }, atThisLoad(120_000));
  afterAll(async () => {
    await spine.stop();
    await drop();
  });

  const call = async () => {
    const tags: string[] = [];
    if (random() < 0.7) tags.push(`team=${pick(['blue', 'red', 'green'])}`);
    if (random() < 0.3) tags.push(`feature=${pick(['search', 'chat'])}`);
    const answer = await spine.post(
      '/chat/completions',
      { ...ask(`hi !tokens:${1 + Math.floor(random() * 90)}`), ...(random() < 0.5 ? {} : { model: 'odd/model' }) },
      {
        authorization: `Bearer ${key}`,
        ...(tags.length === 0 ? {} : { 'x-tollgate-tags': tags.join(',') }),
      },
    );
    expect([answer.status, await answer.text()]).toEqual([200, expect.anything()]);
    const record = (await spine.generation(answer.headers.get('x-generation-id'), key)) as Generation & {
      readonly tags: Made['tags'];
    };
    made.push({ id: record.id, cost: record.cost_micro_usdc, at, tags: record.tags });
  };
  const credit = async () => {
    const micro = 1 + Math.floor(random() * 9_999);
    const reference = `r-${at}`;
    const path = random() < 0.7 ? 'credit' : 'debit';
    const { status } = await admin('POST', `/accounts/${account}/${path}`, {
      amount_micro_usdc: micro,
      reference,
      ...(path === 'debit' ? { reason: 'a mistake' } : {}),
    });
    expect([path, status]).toEqual([path, 200]);
    moved.push({ at, amount: path === 'credit' ? micro : -micro });
  };
  const refunds = new Set<string>();
  let refundSum = 0;
  const refund = async () => {
    const one = made.length === 0 ? undefined : pick(made);
    if (one === undefined || one.cost === 0 || refunds.has(one.id)) return;
    refunds.add(one.id);
    const micro = 1 + Math.floor(random() * one.cost);
    const { status } = await admin('POST', `/calls/${one.id}/refund`, { amount_micro_usdc: micro, reason: 'sorry' });
    expect(status).toBe(200);
    refundSum += micro;
    moved.push({ at, amount: micro });
  };
  /** The gateway ends while a call runs, and starts again: the lock of the call ends with its process, uncharged. */
  const restart = async () => {
    const gone = new AbortController();
    const running = spine.post(
      '/chat/completions',
      ask('hi !tokens:40 !token-ms:50'),
      { authorization: `Bearer ${key}` },
      gone.signal,
    );
    gone.abort();
    await running.catch(() => {});
    await spine.quiet();
    await spine.stop();
    await start();
  };

  const refunded = () => refundSum;
  const spent = () => made.reduce((sum, { cost }) => sum + cost, 0);

  it('is long enough, and each sum of each group is that of its calls, in each zone', async () => {
    expect(made.length).toBeGreaterThan(60);
    expect(moved.length).toBeGreaterThan(10);
    const { data } = await own<{ data: { total_usage: number } }>('/credits');
    expect(Math.round(data.total_usage * 1e6)).toBe(spent());
    await expect
      .poll(
        async () =>
          (await own<{ totals: Row }>('/analytics/own?group_by=month&start_date=2026-09-01&end_date=2026-12-02')).totals
            .cost_micro_usdc,
        { timeout: atThisLoad(20_000) },
      )
      .toBe(spent());
    for (const zone of ZONES)
      for (const period of ['day', 'week', 'month'] as const)
        for (const tag of [null, 'team', 'feature'] as const) {
          const groups = [period, ...(tag === null ? [] : [`tag:${tag}`])].join(',');
          const answer = await own<{ data: Row[]; totals: Row }>(
            `/analytics/own?start_date=2026-09-01&end_date=2026-12-02&group_by=${groups}&time_zone=${zone}`,
          );
          const nameOf = (date: string, value: string | null | undefined) =>
            `${PERIODS[period](date)} ${tag === null ? '' : (value ?? null)}`;
          const expected = ofSameSum(
            made,
            (one) => nameOf(dateIn(zone, one.at), tag === null ? null : one.tags[tag]),
            ({ cost }) => cost,
          );
          const got = ofSameSum(
            answer.data.filter(({ requests }) => requests > 0),
            (row) => `${row[MEMBERS[period]]} ${tag === null ? '' : row['tag']}`,
            (row) => row.cost_micro_usdc,
          );
          expect([zone, groups, got]).toEqual([zone, groups, expected]);
          expect([zone, groups, answer.totals.cost_micro_usdc]).toEqual([zone, groups, spent()]);
        }
  });

  it('has statements whose movements are all of them, and whose balances follow from each other', async () => {
    const { data } = await own<{ data: { total_credits: number; total_usage: number } }>('/credits');
    const balance = Math.round(data.total_credits * 1e6) - Math.round(data.total_usage * 1e6);
    for (const zone of ZONES) {
      let before = 0;
      for (const month of MONTHS) {
        const { data: one } = await own<{ data: Statement }>(`/statements/${month}?time_zone=${zone}`);
        const { data: daily } = await own<{ data: Statement }>(`/statements/${month}?time_zone=${zone}&calls=daily`);
        const inMonth = (time: number) => dateIn(zone, time).startsWith(month);
        const calls = made.filter((call_) => inMonth(call_.at) && call_.cost > 0);
        expect([zone, month, one.opening_micro_usdc]).toEqual([zone, month, before]);
        expect(one.charged_micro_usdc).toBe(calls.reduce((sum, { cost }) => sum + cost, 0));
        expect(one.movements.filter(({ kind }) => kind === 'call').map(({ id }) => id)).toEqual(
          calls.map(({ id }) => id),
        );
        expect(
          ofSameSum(
            one.movements,
            ({ date }) => date,
            (each) => each.amount_micro_usdc,
          ),
        ).toEqual(
          ofSameSum(
            daily.movements,
            ({ date }) => date,
            (each) => each.amount_micro_usdc,
          ),
        );
        expect(
          ofSameSum(
            one.movements,
            ({ date }) => date,
            (each) => each.amount_micro_usdc,
          ),
        ).toEqual(
          ofSameSum(
            [
              ...calls.map((each) => ({ at: each.at, amount: -each.cost })),
              ...moved.filter((each) => inMonth(each.at)),
            ],
            (each) => dateIn(zone, each.at),
            ({ amount }) => amount,
          ),
        );
        let running = one.opening_micro_usdc;
        for (const movement of one.movements)
          expect(movement.balance_micro_usdc).toBe((running += movement.amount_micro_usdc));
        expect(one.closing_micro_usdc).toBe(running);
        expect([daily.opening_micro_usdc, daily.closing_micro_usdc]).toEqual([before, running]);
        before = running;
      }
      // The last movement is in November or, in zones before UTC, in December.
      const { data: last } = await own<{ data: Statement }>(`/statements/2026-11?time_zone=${zone}`);
      const later = [...made.map((each) => ({ at: each.at, amount: -each.cost })), ...moved]
        .filter((each) => dateIn(zone, each.at).startsWith('2026-12'))
        .reduce((sum, { amount }) => sum + amount, 0);
      expect(last.closing_micro_usdc + later).toBe(balance);
    }
  });

  it('has the same statement for the operator, and as a file with both balances', async () => {
    const mine = await own<{ data: Statement }>('/statements/2026-10?time_zone=Asia/Kathmandu');
    const theirs = await admin('GET', `/accounts/${account}/statements/2026-10?time_zone=Asia/Kathmandu`);
    expect(theirs).toEqual({ status: 200, body: mine });
    const file = await spine.get('/statements/2026-10?time_zone=Asia/Kathmandu&format=csv', {
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
    let billed = 0;
    for (const month of MONTHS) {
      const rows = await csv(await spine.get(`/statements/${month}/focus`, { authorization: `Bearer ${key}` }));
      const faults = rows.flatMap((row, index) => focusFaults(row).map((fault) => `${month} row ${index}: ${fault}`));
      expect(faults).toEqual([]);
      const calls = made.filter((each) => dateIn('UTC', each.at).startsWith(month));
      for (const { id, cost, tags } of calls) {
        const own_ = rows.filter((row) => row['x_CallId'] === id && row['ChargeCategory'] === 'Usage');
        expect(own_.reduce((sum, row) => sum + microOf(row['BilledCost']!), 0)).toBe(cost);
        expect(own_.map((row) => JSON.parse(row['Tags']!) as unknown)).toEqual(own_.map(() => tags));
      }
      const [all, admins] = await Promise.all(
        [`/focus/${month}`, `/accounts/${account}/statements/${month}/focus`].map(async (path) =>
          csv(
            await fetch(`${spine.origin}/admin/v1${path}`, { headers: { authorization: `Bearer ${spine.adminKey}` } }),
          ),
        ),
      );
      expect(all).toEqual(admins);
      expect(all!.map((row) => row['BilledCost'])).toEqual(rows.map((row) => row['BilledCost']));
      billed += rows.reduce((sum, row) => sum + microOf(row['BilledCost']!), 0);
    }
    expect(billed).toBe(spent() - refunded());
  });

  it('refuses what is no month or no time zone, and a key that may not see the account', async () => {
    const refused = async (path: string, with_ = key) => {
      const answer = await spine.get(path, { authorization: `Bearer ${with_}` });
      return [answer.status, ((await answer.json()) as { error: { message: string } }).error.message];
    };
    expect(await refused('/statements/2026-13')).toEqual([400, expect.stringContaining('such as 2026-10')]);
    expect(await refused('/statements/2027-01')).toEqual([400, expect.stringContaining('has not begun')]);
    for (const zone of ['Europe/Atlantis', '%2B05:45', 'x', '../etc'])
      expect(await refused(`/statements/2026-10?time_zone=${zone}`)).toEqual([400, expect.stringContaining('IANA')]);
    expect(await refused('/analytics/own?time_zone=Mars')).toEqual([400, expect.stringContaining('IANA')]);
    const limited = await spine.app.keys.create({ account, label: 'x', kind: 'live', limit: 5n });
    expect((await refused('/statements/2026-10', limited!.text))[0]).toBe(403);
  });

  it('passes the audit', async () => {
    expect(await spine.faults()).toEqual([]);
  });
});
