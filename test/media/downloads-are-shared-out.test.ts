import { once } from 'node:events';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import type { Task } from '../../src/gateway/tasks/index.ts';
import { UpstreamFailure } from '../../src/foundation/wire/index.ts';
import { createDownloadQueue } from '../../src/media/video/run/download-queue.ts';
import { createFetchVideos, watchPace } from '../../src/media/video/run/fetch-video.ts';

interface Film {
  readonly provider?: string;
  readonly account?: string;
  readonly dialledIn?: true;
}

const task = (taskId: string, { provider = taskId, account = taskId, dialledIn }: Film = {}) =>
  ({
    primitive: 'video',
    service: 'test/film',
    taskId,
    provider,
    account,
    notes: JSON.stringify({ dialledIn }),
  }) as unknown as Task;

/** Downloads that run until they are ended here. */
function startFetching(more: Partial<Parameters<typeof createFetchVideos>[0]> = {}) {
  /** The ids of tasks in the order in which their downloads began. */
  const begun: string[] = [];
  const ends = new Map<string, PromiseWithResolvers<never>>();
  const fetching = createFetchVideos({
    pipeline: null as never,
    timeoutMs: 1_000,
    leastPace: 0,
    blobs: {
      write({ room }) {
        begun.push(room!);
        ends.set(room!, Promise.withResolvers<never>());
        return ends.get(room!)!.promise;
      },
    },
    onStored: async () => {},
    onError: () => {},
    ...more,
  });
  const settled = () => new Promise(setImmediate);
  onTestFinished(async () => {
    const closing = fetching.close();
    for (const { reject } of ends.values()) reject(new Error('over'));
    await closing;
  });
  return {
    begun,
    fetching,
    settled,
    async want(...tasks: readonly Task[]) {
      for (const one of tasks) fetching.want(one, 0, 'job');
      await settled();
    },
    async end(id: string) {
      ends.get(id)!.reject(new Error('no film'));
      await settled();
    },
  };
}

test('one provider has two downloads at once, and one that failed is not tried again at once', async () => {
  const { begun, want, end } = startFetching();
  const slow = ['1', '2', '3'].map((id) => task(id, { provider: 'slow' }));
  await want(...slow, task('4', { provider: 'other' }));
  expect(begun).toEqual(['1', '2', '4']);
  await want(...slow);
  expect(begun).toHaveLength(3);
  // The third waited for its turn.
  await end('1');
  expect(begun).toEqual(['1', '2', '4', '3']);
  await want(slow[0]!);
  expect(begun).toHaveLength(4);
});

test('accounts have two downloads each, and take turns', async () => {
  const { begun, fetching, want, end } = startFetching({ max: 3 });
  const many = Array.from({ length: 6 }, (_, index) => task(`m${index}`, { account: 'many' }));
  const [one, other] = [task('one'), task('other')];
  await want(...many, one, other);
  expect(begun).toEqual(['m0', 'm1', 'one']);
  expect([fetching.awaits(other, 0), fetching.awaits(task('none'), 0)]).toEqual([true, false]);
  await end('m0');
  expect(begun.at(-1)).toBe('m2');
  await end('one');
  expect(begun.at(-1)).toBe('other');
});

test('providers that dialled in hold at most half of the slots', async () => {
  const { begun, want, end } = startFetching();
  await want(...Array.from({ length: 12 }, (_, index) => task(`s${index}`, { dialledIn: true })));
  expect(begun).toEqual(['s0', 's1', 's2', 's3']);
  await want(task('own'));
  expect(begun.at(-1)).toBe('own');
  await end('s1');
  expect(begun.at(-1)).toBe('s4');
});

test('a download that takes long gives its slot up, and goes on', async () => {
  const { begun, want, fetching } = startFetching({ max: 2, slowMs: 20 });
  const films = ['1', '2', '3', '4', '5'].map((id) => task(id));
  await want(...films);
  await expect.poll(() => begun).toEqual(['1', '2', '3', '4', '5']);
  expect(films.every((film) => fetching.awaits(film, 0))).toBe(true);
});

test('if too many take long, the slowest of the account with the most is ended, and has its turn again', async () => {
  const ended: string[] = [];
  const begun: string[] = [];
  const queue = createDownloadQueue({
    max: 2,
    slowMs: 5,
    slowMax: 3,
    elapsed: () => performance.now(),
    run({ source }, signal, course) {
      begun.push(source);
      course.bytes = source === 'b' ? 10 : 1_000_000;
      return new Promise((resolve) => {
        signal.addEventListener('abort', () => {
          ended.push(source);
          resolve();
        });
      });
    },
  });
  const add = (source: string, account = source) => queue.add({ source, account, provider: source, dialledIn: false });
  for (const source of ['a', 'b', 'c']) add(source, 'many');
  add('other');
  await expect.poll(() => ended[0]).toBe('b');
  await expect.poll(() => begun.filter((source) => source === 'b').length).toBeGreaterThan(1);
  expect(ended).not.toContain('other');
  await queue.close(new Error('over'));
});

test('a file that nobody needs any more when it is its turn is not downloaded', async () => {
  const ended = new Set<string>();
  const { begun, want, end, fetching } = startFetching({ max: 1, isNeeded: async ({ taskId }) => !ended.has(taskId) });
  const second = task('2');
  await want(task('1'), second);
  ended.add('2');
  await end('1');
  expect([begun, fetching.awaits(second, 0)]).toEqual([['1'], false]);
});

test('a file that is too large is not fetched again, another failure is tried again after a pause', async () => {
  const clock = vi.spyOn(performance, 'now').mockReturnValue(1_000_000);
  const errors = [
    new UpstreamFailure('too large', { retryable: false, attributedTo: 'nobody', tooLarge: true }),
    new Error('x'),
  ];
  const begun: string[] = [];
  const { want, settled } = startFetching({
    blobs: { write: async ({ source }) => Promise.reject(errors[begun.push(source) - 1] ?? new Error('over')) },
  });
  const both = [task('1'), task('2')];
  await want(...both);
  await settled();
  clock.mockReturnValue(2_000_000);
  await want(...both);
  expect(begun).toHaveLength(3);
  expect(begun[2]).toBe(begun[1]);
});

describe('a file that comes too slowly', () => {
  const start = () => {
    const course = { bytes: 0 };
    const pace = watchPace({ leastPace: 1_000, paceMs: 20 }, course);
    onTestFinished(() => pace.stop());
    return { pace, course, ended: once(pace.tooSlow, 'abort') };
  };

  test('is not waited for', async () => {
    const { pace, course, ended } = start();
    pace.begin();
    pace.waits(true);
    pace.arrived(1);
    await ended;
    expect([course.bytes, String(pace.tooSlow.reason)]).toEqual([
      1,
      expect.stringContaining('more slowly than 1000 bytes a second'),
    ]);
  });

  test('is waited for while it has not begun, while it is fast, and while the own disk is slow', async () => {
    const others = start();
    const [unbegun, fast, held] = [start().pace, start().pace, start().pace];
    unbegun.waits(true);
    for (const pace of [fast, held]) pace.begin();
    fast.waits(true);
    const arriving = setInterval(() => fast.arrived(100_000), 1);
    onTestFinished(() => clearInterval(arriving));
    // As long as a slow one is waited for.
    others.pace.begin();
    others.pace.waits(true);
    await others.ended;
    expect([unbegun, fast, held].map(({ tooSlow }) => tooSlow.aborted)).toEqual([false, false, false]);
  });
});
