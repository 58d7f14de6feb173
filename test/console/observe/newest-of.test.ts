import { expect, test } from 'vitest';
import { GatewayError } from '#errors';
import { localAccount } from '#accounts/names';
import { createLastRefusals } from '#observe';
import { NewestOf } from '../../../src/console/observe/newest-of.ts';

const MIB = 1024 * 1024;

test('of each owner the newest are remembered, and of all together so many bytes', () => {
  const newest = new NewestOf<number>(() => MIB);
  newest.set('a', [3, 2, 1]);
  newest.set('b', [4]);
  expect(newest.entriesOf('a')).toEqual([3, 2, 1]);
  newest.set('a', [5, 3, 2, 1]);
  newest.set('c', [6, 7, 8]);
  expect(newest.all()).toEqual([4, 5, 3, 2, 1, 6, 7, 8]);
  // The owner that had nothing new for longest is forgotten first.
  newest.set('d', [9]);
  expect([newest.entriesOf('b'), newest.entriesOf('a')]).toEqual([[], [5, 3, 2, 1]]);
  const few = new NewestOf<number>(() => 1);
  few.set(
    'a',
    Array.from({ length: 30 }, (_, at) => at),
  );
  expect(few.entriesOf('a')).toHaveLength(20);
});

test('of one error at most 5 reasons are remembered, and their bytes count', () => {
  const refusals = createLastRefusals(() => 7);
  const account = localAccount('acme');
  const words = ['one', 'two', 'three', 'four', 'five', 'six', 'six'];
  for (const [at, word] of words.entries())
    refusals.note({
      error: new GatewayError('invalid_request', `the ${word} is wrong: ${at}`),
      caller: { account, key: null, wallet: null },
      target: 'MCP',
      requestId: 'req-1',
    });
  const [only, ...others] = refusals.refusalsOf(account, null);
  expect(others).toEqual([]);
  expect(only!.requests).toBe(7);
  expect(only!.reasons.map(({ message, requests }) => [message, requests])).toEqual([
    ['the six is wrong: 6', 2],
    ['the five is wrong: 4', 1],
    ['the four is wrong: 3', 1],
    ['the three is wrong: 2', 1],
    ['the two is wrong: 1', 1],
  ]);
  expect(refusals.since).toBe(7);
});

test('long names and messages of refused requests hold no memory beyond their bound', () => {
  const refusals = createLastRefusals(() => 0);
  const account = localAccount('acme');
  const before = process.memoryUsage().heapUsed;
  for (let at = 0; at < 20; at += 1) {
    const long = `${at}${'x'.repeat(8 * MIB)}`;
    const error = new GatewayError('invalid_model', `Model not found: ${long}`);
    refusals.note({ error, caller: { account, key: null, wallet: null }, target: `MCP ${long}`, requestId: 'req-1' });
  }
  expect(refusals.refusalsOf(account, null)).toHaveLength(20);
  expect((process.memoryUsage().heapUsed - before) / MIB).toBeLessThan(100);
});
