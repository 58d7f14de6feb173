import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readTree, ROOT } from '../architecture/source.ts';

// The tables of docs/reference/kept.md have each table of the database. What a stranger can fill has a bound and an
// end, and what calls leave says when it is written.

const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');
const tables = [...read('docs/schema.sql').matchAll(/^CREATE TABLE "?(\w+)"?/gm)].map(([, name]) => name!);
const [bounds, written] = read('docs/reference/kept.md').split('## What is written when') as [string, string];
const rowsOf = (text: string) =>
  text
    .split('\n')
    .filter((line) => line.startsWith('| `'))
    .map((line) => line.slice(2, -2).split(' | '));
const namesIn = (text: string) => [...text.matchAll(/`(\w+)`/g)].map(([, name]) => name!);
const rows = rowsOf(bounds).map(([names, maker, bound, end]) => ({
  names: namesIn(names!),
  maker: /^\w+/.exec(maker!)![0],
  bound: bound!,
  end: end!,
}));

/**
 * Rows that strangers can make and that nothing ends, with the reason. Each is small, and takes a request of its rate.
 */
const FOR_EVER: Readonly<Record<string, string>> = {
  transfers: 'the books',
  accounts: 'the books',
  deposits: 'money on a chain that came',
  prices: 'calls are proven by them',
  known_users: '24 bytes',
};

test('each table of the database is in it once, and no other', () => {
  expect(rows.flatMap(({ names }) => names).toSorted()).toEqual(tables.toSorted());
});

test('each row says who makes it, its bound and its end', () => {
  const makers = ['operator', 'gateway', 'call', 'account', 'stranger'];
  expect(rows.filter(({ maker, bound, end }) => !makers.includes(maker) || bound === '' || end === '')).toEqual([]);
});

test('what strangers can make ends, and a statement ends it', () => {
  const made = rows.filter(({ maker }) => maker === 'stranger');
  const endless = made.filter(({ end }) => end.startsWith('for ever')).flatMap(({ names }) => names);
  expect(endless.toSorted()).toEqual(Object.keys(FOR_EVER).toSorted());
  const sql = readTree(['src'], ['.sql'])
    .filter(({ path }) => !path.includes('/migrations/'))
    .map(({ text }) => text)
    .join('\n');
  const schema = read('docs/schema.sql');
  const ends = (table: string) =>
    new RegExp(`DELETE FROM "?${table}\\b`).test(sql) ||
    new RegExp(`CREATE TABLE "?${table}\\b[^;]*ON DELETE CASCADE`).test(schema);
  const ending = made.filter(({ end }) => !end.startsWith('for ever')).flatMap(({ names }) => names);
  expect(ending.filter((name) => !ends(name))).toEqual([]);
});

/** What calls leave that is no answer, so that nothing of it can be charged and lost. */
const NO_ANSWER: Readonly<Record<string, readonly string[]>> = {
  'the books, which have the charge': ['locks', 'journal_batches', 'account_stripes', 'budget_stripes', 'budgets'],
  'figures of accounts, computed from the books': [
    'usage_days',
    'tag_days',
    'account_sums',
    'user_days',
    'user_counts',
  ],
  'figures of offers': ['offer_sums', 'service_times', 'offer_days', 'offer_figures', 'service_days', 'public_days'],
  'the news of a task, which has the answer': ['webhook_deliveries'],
};

test('each table that calls fill has its row in the table of what is written when, or is no answer', () => {
  const answers = new Set(rowsOf(written).flatMap(([names]) => namesIn(names!)));
  expect([...answers].filter((name) => !tables.includes(name))).toEqual([]);
  const others = Object.values(NO_ANSWER).flat();
  const made = rows.filter(({ maker }) => maker === 'call').flatMap(({ names }) => names);
  expect(made.filter((name) => answers.has(name) === others.includes(name))).toEqual([]);
  expect(others.filter((name) => !made.includes(name))).toEqual([]);
});

test('each row of it has the charge in its order, and says what a kill leaves before, between and after', () => {
  const cells = rowsOf(written).map(([, kept, order, before, between, after]) => ({
    kept,
    isOrdered: /charge|rest of the lock|as above/.test(order!),
    isWhole: [before, between, after].every((cell) => cell !== undefined && cell !== ''),
  }));
  expect(cells.filter(({ isOrdered, isWhole }) => !isOrdered || !isWhole)).toEqual([]);
});
