/**
 * `node bench/analytics.ts`: the time to read the market's figures, and a gateway's cost of adding calls up. The
 * embedded database has `--users` users on each of `--days` days. Two gateways with an upstream in this process handle
 * `--calls` chats in turns. One adds calls up every 2 s, which is the default. The other one never does. The
 * measurement includes the whole work of adding up. With `--calls 0` this part is skipped.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { findMarket } from '../src/billing/analytics/index.ts';
import { createFigurePages } from '../src/console/pages/figures/public-routes.ts';
import { loadStatements, openDatabase, type Statement } from '../src/foundation/store/index.ts';
import { chatInTurns, middle } from './in-turns.ts';

const ROUNDS = 9;
/** Interval of the roll-up: the default of `analytics.every_ms`. */
const EVERY_MS = 2_000;
const FIRST = 20_000;
const SERVICES = 200;
const PROVIDERS = 3;

const { values } = parseArgs({
  options: {
    users: { type: 'string', default: '10000' },
    days: { type: 'string', default: '7' },
    calls: { type: 'string', default: '1500' },
  },
});
const [users, days, calls] = [Number(values.users), Number(values.days), Number(values.calls)];
const folder = mkdtempSync(join(tmpdir(), 'tollgate-bench-'));
try {
  await readFigures();
  if (calls > 0)
    await chatInTurns({
      settings: [`[analytics]\nevery_ms = ${EVERY_MS}`, '[analytics]\nevery_ms = 0'],
      calls,
      // Long enough for the roll-up of the turn's calls.
      afterMs: EVERY_MS * 1.5,
      words: 'with calls added up',
    });
} finally {
  rmSync(folder, { recursive: true, force: true });
}

async function readFigures(): Promise<void> {
  const database = await openDatabase({ dataDir: join(folder, 'figures') });
  const run = (name: string, text: string) => database.query({ name: `bench/${name}`, text } satisfies Statement);
  const numbers = (to: number, name = 'n') =>
    `(WITH RECURSIVE counted (${name}) AS (SELECT 0 UNION ALL SELECT ${name} + 1 FROM counted WHERE ${name} < ${to} - 1) SELECT ${name} FROM counted)`;
  await run(
    'users',
    // Half of a day's users are also active on the next day.
    `INSERT INTO user_days (day, account_hash) SELECT ${FIRST} + d, (d * ${users} / 2 + n) * 7919 FROM ${numbers(days, 'd')}, ${numbers(users)}`,
  );
  await run(
    'previous',
    `UPDATE user_days SET previous = COALESCE((SELECT MAX(e.day) FROM user_days AS e WHERE e.account_hash = user_days.account_hash AND e.day < user_days.day), -1)`,
  );
  await run(
    'known',
    `INSERT INTO known_users SELECT account_hash, 1, MIN(day), -2 FROM user_days GROUP BY account_hash`,
  );
  const ofUsers = loadStatements(import.meta.url, '../src/billing/analytics/sql/roll-up.sql', [
    'countActiveUsers',
    'noteCountedUsers',
  ]);
  const ofAccounts = loadStatements(import.meta.url, '../src/billing/analytics/sql/known-accounts.sql', [
    'countKnownAccounts',
    'noteCountedAccounts',
  ]);
  for (const [name, { text }] of Object.entries({ ...ofUsers, ...ofAccounts })) await run(name, text);
  await run(
    'listings',
    `INSERT INTO service_days SELECT ${FIRST} + d, 0, 'model', 's/' || s, 'p' || p, 50, 1, 1000, 9, 9, 0, 0, 0, 0, 9, 9
     FROM ${numbers(days, 'd')}, ${numbers(SERVICES, 's')}, ${numbers(PROVIDERS, 'p')}`,
  );
  await run(
    'market',
    `INSERT INTO public_days SELECT day, 0, primitive, SUM(requests), SUM(failed), SUM(charged), SUM(prompt), SUM(completion), 0, 0 FROM service_days GROUP BY day, primitive`,
  );
  const range = { first: FIRST, last: FIRST + days - 1 };
  const shown = { until: Number.MAX_SAFE_INTEGER, usersMin: 0, development: false };
  const read = (name: string) =>
    createFigurePages(database, { parts: 0 }).page('one', name, false, (query) =>
      findMarket(query, range, shown).then(plain),
    );
  const uncached: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const begun = performance.now();
    await read(`${round}`);
    uncached.push(performance.now() - begun);
  }
  const pages = createFigurePages(database, { parts: 0 });
  const cached: number[] = [];
  for (let round = 0; round <= ROUNDS * 100; round += 1) {
    const begun = performance.now();
    await pages.page('one', 'kept', false, (query) => findMarket(query, range, shown).then(plain));
    if (round > 0) cached.push(performance.now() - begun);
  }
  await database.close();
  process.stdout.write(
    `${days} days with ${users} users a day: ${middle(uncached).toFixed(1)} ms uncached (best ${Math.min(...uncached).toFixed(1)}), ` +
      `${middle(cached).toFixed(3)} ms cached\n`,
  );
}

/** Converts bigints to numbers, as a page does. */
function plain(figures: object): object {
  const text = JSON.stringify(figures, (_name, value: unknown) => (typeof value === 'bigint' ? Number(value) : value));
  return JSON.parse(text) as object;
}
