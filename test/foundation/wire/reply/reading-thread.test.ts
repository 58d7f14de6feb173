import { expect, test } from 'vitest';
import { ReadingThread } from '../../../../src/foundation/wire/reply/reading-thread.ts';
import { atThisLoad } from '../../../support/at-this-load.ts';

// A thread that reads ends with a job that takes too long, and the jobs behind it run in a new one.

const module = (code: string) => new URL(`data:text/javascript,${encodeURIComponent(code)}`);
const DOUBLE = module('export const run = (value) => ({ value: value * 2, transfer: [] });');
const ENDLESS = module('export function run() { for (;;); }');
const LATER = module('export const run = async (value) => ({ value: await value, transfer: [] });');
const THROWS = module('export function run() { throw new Error("broken"); }');

const FILE = module('export const run = ({ bytes }) => ({ value: bytes.byteLength, transfer: [] });');

test(
  'a file that takes too much of a processor is ended, and those behind it are not',
  { timeout: atThisLoad(30_000) },
  async () => {
    const thread = new ReadingThread();
    const endless = thread.readFile('a', ENDLESS, Buffer.alloc(1), 500);
    const behind = [thread.read('a', DOUBLE, 2, []), thread.read('b', DOUBLE, 3, [])];
    await expect(endless).rejects.toThrow(/took more than 500 ms of a processor/);
    expect(await Promise.all(behind)).toEqual([4, 6]);
    expect(await thread.readFile('a', FILE, Buffer.alloc(7), 500)).toBe(7);
  },
);

test('a module may resolve later, and a failure is that of its job alone', async () => {
  const thread = new ReadingThread();
  const failed = thread.read('a', THROWS, null, []);
  const later = thread.read('a', LATER, 'value', []);
  await expect(failed).rejects.toThrow('broken');
  expect(await later).toBe('value');
});

test('accounts take turns', async () => {
  const thread = new ReadingThread();
  const ended: string[] = [];
  const job = (account: string, name: string) =>
    thread.read(account, LATER, name, []).then(() => void ended.push(name));
  await Promise.all([job('a', 'a1'), job('a', 'a2'), job('a', 'a3'), job('b', 'b1')]);
  expect(ended.indexOf('b1')).toBeLessThan(ended.indexOf('a3'));
});
