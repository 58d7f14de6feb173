import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createDownloadQueue, type QueuedFile } from '../../src/media/video/run/download-queue.ts';

// The queue of downloads by itself, with downloads that run until the test ends them, and a clock of the test's own.

const SLOW_MS = 100;

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }));
afterEach(() => void vi.useRealTimers());

interface RunningFile {
  readonly ended: AbortSignal;
  readonly course: { bytes: number };
  done(): void;
}

function startQueue({ max = 100, slowMax = 100 }: { max?: number; slowMax?: number } = {}) {
  const begun: string[] = [];
  const running = new Map<string, RunningFile>();
  const queue = createDownloadQueue<QueuedFile>({
    max,
    slowMs: SLOW_MS,
    slowMax,
    elapsed: () => performance.now(),
    run({ source }, ended, course) {
      begun.push(source);
      const { promise, resolve } = Promise.withResolvers<void>();
      running.set(source, { ended, course, done: resolve });
      return promise;
    },
  });
  const settled = () => new Promise(setImmediate);
  return {
    queue,
    begun,
    /** A file of an account and a provider of its own, unless they are named. */
    add: (source: string, { account = source, provider = source, dialledIn = false }: Partial<QueuedFile> = {}) =>
      queue.add({ source, account, provider, dialledIn }),
    arrived: (source: string, bytes: number) => void (running.get(source)!.course.bytes += bytes),
    /** The files that were told to end, as they were not. */
    told: () => [...running].filter(([, { ended }]) => ended.aborted).map(([source]) => source),
    async end(source: string) {
      running.get(source)!.done();
      running.delete(source);
      await settled();
    },
  };
}

const slow = () => vi.advanceTimersByTime(SLOW_MS);

test('accounts take turns, also those whose files came later', async () => {
  const { add, begun, end } = startQueue({ max: 1 });
  for (const source of ['a1', 'a2', 'a3']) add(source, { account: 'a', provider: source });
  for (const source of ['b1', 'b2']) add(source, { account: 'b', provider: source });
  for (let at = 0; at < 4; at++) await end(begun.at(-1)!);
  expect(begun).toEqual(['a1', 'a2', 'b1', 'a3', 'b2']);
});

test('one slot is enough for a provider that dialled in', () => {
  const { add, begun } = startQueue({ max: 1 });
  add('far', { dialledIn: true });
  expect(begun).toEqual(['far']);
});

test('a file that is downloaded, or waits, is not queued again', async () => {
  const { add, begun, end, queue } = startQueue({ max: 1 });
  for (let times = 0; times < 3; times++) for (const source of ['a', 'b']) add(source);
  await end('a');
  await end('b');
  expect([begun, queue.has('a'), queue.has('b')]).toEqual([['a', 'b'], false, false]);
});

test('so many files may wait, and each gives its place back when its download begins', async () => {
  const { add, begun, end, queue } = startQueue({ max: 1 });
  const MOST = 10_000;
  // A file takes one place, however often it is added.
  add('first');
  for (let times = 0; times < 2 * MOST; times++) add('waits');
  add('next');
  expect([queue.has('waits'), queue.has('next')]).toEqual([true, true]);
  for (let times = 0; times < 2; times++) await end(begun.at(-1)!);
  await end('next');
  for (let at = 0; at <= MOST; at++) {
    add(`${at}`);
    await end(`${at}`);
  }
  expect(begun).toHaveLength(3 + MOST + 1);
  add('runs');
  for (let at = 0; at <= MOST; at++) add(`${at}`);
  expect([queue.has(`${MOST - 1}`), queue.has(`${MOST}`)]).toEqual([true, false]);
});

test('no download ends as long as no more take long than may', () => {
  const { add, told } = startQueue({ slowMax: 2 });
  add('a');
  add('b');
  slow();
  expect(told()).toEqual([]);
});

test('one ends for each that is too many, and one that has not stopped yet does not count', () => {
  const { add, told } = startQueue({ slowMax: 1 });
  add('a');
  add('b');
  slow();
  expect(told()).toHaveLength(1);
  add('c');
  slow();
  expect(told()).toHaveLength(2);
});

test('the download that ends is of the account with the most, then of the provider with the most, then the slowest', () => {
  const ended = (files: Readonly<Record<string, readonly [owner: Partial<QueuedFile>, bytes: number]>>) => {
    const sources = Object.entries(files);
    const { add, arrived, told } = startQueue({ slowMax: sources.length - 1 });
    for (const [source, [owner, bytes]] of sources) {
      add(source, owner);
      arrived(source, bytes);
    }
    slow();
    return told();
  };
  const [many, busy] = [{ account: 'many' }, { provider: 'busy' }];
  expect(ended({ alone: [{}, 1], one: [many, 9], two: [many, 8] })).toEqual(['two']);
  expect(ended({ alone: [{}, 1], one: [busy, 8], two: [busy, 9] })).toEqual(['one']);
  expect(ended({ one: [busy, 1], two: [busy, 1], three: [many, 9], four: [many, 8] })).toEqual(['four']);
  expect(ended({ fast: [{}, 9], slow: [{}, 1] })).toEqual(['slow']);
});

test('the slowest is the one with the fewest bytes for its time', () => {
  const { add, arrived, told } = startQueue({ slowMax: 1 });
  add('old');
  vi.advanceTimersByTime(SLOW_MS * 9);
  add('young');
  arrived('old', 500);
  arrived('young', 400);
  slow();
  expect(told()).toEqual(['old']);
});

test('a download that ended in time is no slow one later', async () => {
  const { add, end, told } = startQueue({ slowMax: 1 });
  add('a');
  await end('a');
  expect(vi.getTimerCount()).toBe(0);
  add('b');
  slow();
  expect(told()).toEqual([]);
});

test('a queue that is closed ends what runs, forgets what waits and takes nothing', async () => {
  const { add, begun, end, queue, told } = startQueue({ max: 1 });
  add('runs');
  add('waits');
  const closed = queue.close(new Error('over'));
  add('late');
  expect([told(), queue.has('waits'), queue.has('late')]).toEqual([['runs'], false, false]);
  await end('runs');
  await closed;
  expect(begun).toEqual(['runs']);
});
