import { expect, test } from 'vitest';
import { createComparisonAlarm } from '../../../src/billing/chains/treasury.ts';
import type { ChainBook } from '../../../src/billing/chains/chain-rows.ts';

const bookOf = (network: string, comparedAt: number | null): ChainBook => ({
  network,
  asset: 'a',
  treasury: 't',
  opening: 0n,
  cursor: '0',
  height: 0n,
  held: null,
  booked: null,
  comparedAt,
  halted: null,
  previous: null,
  previousEmpty: false,
  openingId: null,
});

test('is told once, and once more when it happens again', async () => {
  let time = 1_000_000;
  let books: readonly ChainBook[] = [bookOf('a', 0), bookOf('gone', 0)];
  const told: string[] = [];
  const networks = ['a', 'never'];
  const alarm = createComparisonAlarm({
    networks,
    books: async () => books,
    lateMs: 100,
    onProblem: (level, _problem, { network }) => told.push(`${level} ${String(network)}`),
    now: () => time,
  });
  // What was not compared while no gateway ran is compared first.
  await alarm.check();
  expect([told, alarm.late()]).toEqual([[], []]);
  time += 101;
  await alarm.check();
  await alarm.check();
  expect([told, alarm.late()]).toEqual([
    ['error a', 'error never'],
    ['a', 'never'],
  ]);
  books = [bookOf('a', time)];
  await alarm.check();
  expect([told.slice(2), alarm.late()]).toEqual([['info a'], ['never']]);
  // What a reload adds has just begun.
  networks.push('new');
  await alarm.check();
  expect(alarm.late()).toEqual(['never']);
  time += 101;
  await alarm.check();
  expect(alarm.late()).toEqual(['never', 'a', 'new']);
});
