import { afterEach, expect, inject, test } from 'vitest';
import { atThisLoad } from '../../../support/at-this-load.ts';
import { ENGINES } from '../../../support/engines.ts';
import { freshDatabase } from '../../../support/fresh-database.ts';
import { type Spine, startSpine, UNHURRIED } from '../../../support/spine.ts';
import { type CallFacts, DAY_MS } from '../../../../src/billing/analytics/call-facts.ts';
import { firstHour, type SumRow, SumsOfCalls } from '../../../../src/billing/analytics/sums.ts';
import { loadStatements, rowsParam, type Statement } from '#store';

// The operator's pages read sums, and calls only of one account and in bounded parts. The deep run has a million calls
// of 30 days by 2,000 accounts at 300 offers, and prints the times; each request is to take at most 300 ms on an idle
// machine.

const isDeep = process.env['TOLLGATE_DEEP'] === '1';
const CALLS = isDeep ? 1_000_000 : 20_000;
const ACCOUNTS = 2_000;
const OFFERS = 300;
const DAYS = 30;
const MOST_MS = 300;
const ROWS = 5_000;
/** So many calls are summed up at once. */
const PART = 200_000;

const SQL = loadStatements(
  new URL('../../../../src/billing/analytics/roll-up.ts', import.meta.url).href,
  './sql/roll-up.sql',
  ['addOfferSums', 'addAccountSums', 'addUsageDays', 'addTagDays', 'addListingDays'],
);
const statement = (name: string, text: string) => ({ name: `test/million-${name}`, text });
const LOCKS = statement(
  'locks',
  `INSERT INTO locks (id, account, amount, prices, state, charged, fee, drawn, shortfall, created_at, expires_at, resolved_at, lock_detail, detail, usage, provider)
SELECT r.value ->> 0, r.value ->> 1, 100, '[]', r.value ->> 2, CAST(r.value ->> 3 AS BIGINT), CAST(r.value ->> 4 AS BIGINT), 0, 0, CAST(r.value ->> 5 AS BIGINT), 9000000000000, CAST(r.value ->> 5 AS BIGINT), r.value ->> 6, r.value ->> 7, '{}', r.value ->> 8
FROM json_each($1) AS r WHERE TRUE`,
);
const HELD = statement(
  'accounts',
  `INSERT INTO accounts (id, available, locked) SELECT r.value ->> 0, 1000, 0 FROM json_each($1) AS r WHERE TRUE`,
);
const TRANSFERS = statement(
  'transfers',
  `INSERT INTO transfers (id, from_account, to_account, amount, memo, at)
SELECT r.value ->> 0, 'treasury:operator', r.value ->> 1, 1, '', CAST(r.value ->> 2 AS BIGINT) FROM json_each($1) AS r WHERE TRUE`,
);

let dispose = async () => {};
afterEach(() => dispose());

const CAUSES = ['', '', '', '', '', '', '', 'provider_unavailable', 'client_gone', 'tool_error'];
const MEASURED = 'tollgate:local:a0';

/** A few accounts and offers make most calls: the busiest account a fiftieth of all. */
const skewed = (n: number, of: number) => Math.floor((n * n) / of);

/** `own`: a provider of the gateway. */
function* calls(now: number, own: string): Generator<CallFacts> {
  for (let n = 0; n < CALLS; n++) {
    const account = `tollgate:local:a${skewed((n * 7919) % ACCOUNTS, ACCOUNTS)}`;
    const offer = skewed((n * 104_729) % OFFERS, OFFERS);
    const at = now - Math.floor((n / CALLS) * (DAYS - 1) * DAY_MS);
    // Failures of the account whose page is read are rare, so a search for them looks at many calls.
    const isRare = account === MEASURED && Math.floor(n / ACCOUNTS) % 100 !== 7;
    const cause = isRare ? '' : CAUSES[account === MEASURED ? 8 : n % CAUSES.length]!;
    yield {
      day: Math.floor(at / DAY_MS),
      at,
      account,
      isDevelopment: false,
      key: `k${n % 5}`,
      tags: [['team', `team-${n % 12}`]],
      primitive: 'model',
      service: `vendor/model-${offer}`,
      provider: cause !== '' ? '' : offer % 20 === 3 ? own : `0x${`${offer % 20}`.padStart(40, '0')}`,
      cause,
      cost: cause === '' ? 5n : 0n,
      charged: cause === '' ? 7n : 0n,
      fee: cause === '' ? 1n : 0n,
      prompt: 10,
      completion: 5,
      reasoning: 0,
      cached: 0,
      images: 0,
      seconds: 0,
      firstByteMs: 10,
      durationMs: 20,
    };
  }
}

const rowOf = ({ account, service, cause, charged, fee, at, key, provider }: CallFacts, n: number): SumRow => [
  `gen-${n}`,
  account,
  cause === '' ? 'settled' : 'released',
  `${charged}`,
  `${fee}`,
  at,
  JSON.stringify({ primitive: 'model', service, key, requestId: `req-${n}`, params: 'x'.repeat(300) }),
  JSON.stringify(cause === '' ? { outcome: 'complete' } : { outcome: 'failed', errorCode: cause }),
  provider,
];

/** Writes the calls and the sums that the roll-up makes of them. */
async function fill(database: Spine['app']['database'], now: number, own: string): Promise<void> {
  const add = async (to: Statement, rows: readonly SumRow[]) => {
    for (let from = 0; from < rows.length; from += ROWS)
      await database.batch([{ statement: to, params: [rowsParam(rows.slice(from, from + ROWS))] }]);
  };
  const accounts = Array.from({ length: ACCOUNTS }, (_, n) => `escrow:tollgate:local:a${n}`);
  await add(
    HELD,
    accounts.map((account) => [account]),
  );
  await add(
    TRANSFERS,
    Array.from({ length: CALLS / 100 }, (_, n) => [`credit:m${n}`, accounts[n % 50]!, now - n]),
  );
  let sums = new SumsOfCalls(firstHour(now));
  const addSums = async () => {
    const { offers, accounts: bySpan, usage, tags, listings } = sums.sums();
    await add(SQL.addOfferSums, offers);
    await add(SQL.addAccountSums, bySpan);
    await add(SQL.addUsageDays, usage);
    await add(SQL.addTagDays, tags);
    await add(SQL.addListingDays, listings);
    sums = new SumsOfCalls(firstHour(now));
  };
  let locks: SumRow[] = [];
  let n = 0;
  for (const call of calls(now, own)) {
    sums.add(call);
    locks.push(rowOf(call, n++));
    if (locks.length === ROWS) {
      await add(LOCKS, locks);
      locks = [];
    }
    if (n % PART === 0) await addSums();
  }
  await add(LOCKS, locks);
  await addSums();
  // PostgreSQL does so by itself a minute after rows have come.
  await database.query(statement('analyze', 'ANALYZE'));
}

const ACCOUNT = `/accounts/${encodeURIComponent(MEASURED)}`;
const PATHS = [
  '/overview?range=24h',
  '/overview?range=7d',
  '/overview?range=30d',
  '/services?range=30d',
  '/providers?limit=100',
  '/providers/failures',
  '/accounts?limit=50',
  '/accounts?limit=50&state=frozen',
  '/accounts?limit=50&label=nobody',
  ACCOUNT,
  ...['day', 'week', 'month', 'model', 'key', 'member', 'provider', 'primitive', 'tag:team', 'day,model'].map(
    (groups) => `${ACCOUNT}/usage?group_by=${groups}&start_date=FROM`,
  ),
  `${ACCOUNT}/usage?group_by=day&start_date=FROM&time_zone=Europe%2FBerlin`,
  `${ACCOUNT}/usage?group_by=month,tag:team&start_date=FROM&time_zone=Europe%2FBerlin`,
  ...[
    'account',
    'month,account',
    'account,tag:team',
    'month,tag:team',
    'tag:team',
    'day',
    'month',
    'model',
    'week,model',
    'key',
    'account,key',
    'provider',
    'primitive',
  ].map((groups) => `/usage?group_by=${groups}&start_date=FROM`),
  '/usage?group_by=month,account&start_date=FROM&time_zone=Europe%2FBerlin',
  `${ACCOUNT}/calls?limit=25`,
  `${ACCOUNT}/calls?limit=25&failed=true`,
  `${ACCOUNT}/calls?limit=25&failed=false`,
  `${ACCOUNT}/calls?limit=25&service=vendor%2Fnone`,
  `${ACCOUNT}/calls?limit=25&key=${'0'.repeat(64)}`,
  `${ACCOUNT}/calls?limit=25&state=held`,
  `${ACCOUNT}/calls?limit=25&outcome=cut`,
  `${ACCOUNT}/calls?limit=25&primitive=tool`,
  `${ACCOUNT}/calls?limit=25&from=FROM&to=FROM`,
  `${ACCOUNT}/movements?limit=25`,
  `${ACCOUNT}/keys?limit=50`,
  `${ACCOUNT}/notes`,
  `${ACCOUNT}/members`,
  `${ACCOUNT}/statements/MONTH?calls=daily`,
  `/calls/gen-0`,
  '/calls/gen-none',
  '/gateways',
  '/providers/PROVIDER?range=30d',
  '/providers/calls',
  '/reconciliation/results',
  '/audit-log?limit=50',
];

/** Files, whose first part is to come in time. */
const FILES = [
  `${ACCOUNT}/usage?group_by=day,model&start_date=FROM&format=csv`,
  '/usage?group_by=month,account,tag:team&start_date=FROM&format=csv',
  `${ACCOUNT}/statements/MONTH?calls=each&format=csv`,
  `${ACCOUNT}/statements/MONTH/focus`,
  '/focus/MONTH',
];

test.each(ENGINES)('the pages of the operator are fast on %s', async (engine) => {
  const fresh = engine === 'postgres' ? await freshDatabase(inject('postgresUrl')) : null;
  const spine = await startSpine({ toml: UNHURRIED, ...(fresh === null ? {} : { databaseUrl: fresh.url }) });
  dispose = async () => {
    await spine.stop();
    await fresh?.drop();
  };
  const now = Date.now();
  const headers = { authorization: `Bearer ${spine.adminKey}`, 'content-type': 'application/json' };
  const listed = await fetch(`${spine.origin}/admin/v1/services`, { headers });
  const [offer] = ((await listed.json()) as Answer).data as readonly { readonly provider: string }[];
  const own = offer!.provider;
  await fill(spine.app.database, now, own);
  await fetch(`${spine.origin}/admin/v1/accounts`, { method: 'POST', headers, body: JSON.stringify({ name: 'a0' }) });
  const from = new Date(now - DAYS * DAY_MS).toISOString().slice(0, 10);

  const month = new Date(now - 7 * DAY_MS).toISOString().slice(0, 7);
  const open = async (path: string) => {
    const answer = await fetch(
      `${spine.origin}/admin/v1${path.replaceAll('FROM', from).replace('MONTH', month).replace('PROVIDER', encodeURIComponent(own))}`,
      {
        headers,
      },
    );
    expect(answer.status, path).toBe(path === '/calls/gen-none' ? 404 : 200);
    return answer;
  };
  const ask = async (path: string) => {
    const begun = performance.now();
    const answer = await open(path);
    return { body: (await answer.json()) as Answer, ms: performance.now() - begun };
  };
  const slow: string[] = [];
  // With the CPU of this process, which is that of the gateway, of its embedded database and of the client.
  const note = (path: string, first: number, again: number, cpu: NodeJS.CpuUsage) => {
    const cpuMs = (cpu.user + cpu.system) / 1_000;
    if (isDeep)
      console.log(`${engine} ${path}: ${first.toFixed(0)} ms, then ${again.toFixed(0)} ms, CPU ${cpuMs.toFixed(0)} ms`);
    if (again > atThisLoad(MOST_MS)) slow.push(`${path}: ${again.toFixed(0)} ms`);
  };
  const firstPart = async (path: string) => {
    const begun = performance.now();
    const reader = (await open(path)).body!.getReader();
    expect((await reader.read()).done, path).toBe(false);
    const ms = performance.now() - begun;
    await reader.cancel();
    return ms;
  };
  for (const path of FILES) {
    const first = await firstPart(path);
    const cpu = process.cpuUsage();
    note(path, first, await firstPart(path), process.cpuUsage(cpu));
  }
  for (const path of PATHS) {
    const first = await ask(path);
    const cpu = process.cpuUsage();
    const again = await ask(path);
    note(path, first.ms, again.ms, process.cpuUsage(cpu));
    const { totals } = (first.body.data ?? {}) as { readonly totals?: Readonly<Record<string, number>> };
    if (path === '/overview?range=30d') expect(totals!['requests']! + totals!['failed']!).toBe(CALLS);
    if (path.endsWith('&failed=true'))
      expect(first.body.data).toSatisfy(
        (found: readonly { readonly failed: boolean }[]) => found.length === 25 && found.every(({ failed }) => failed),
      );
  }
  if (isDeep) expect(slow).toEqual([]);
});

interface Answer {
  readonly data: unknown;
}
