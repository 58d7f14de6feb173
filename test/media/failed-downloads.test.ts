import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { GatewayError } from '#errors';
import type { Task } from '#tasks';
import { tooLarge } from '#wire/replies';
import { createFetchVideos, watchPace } from '../../src/media/video/run/fetch-video.ts';
import { answeringPipeline } from './support/answering-pipeline.ts';
import { tinyMp4 } from './support/tiny-mp4.ts';

// When a download that has failed is tried again, and when a file comes too slowly, by a clock of the test's own.

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'performance'] });
});
afterEach(() => void vi.useRealTimers());

const TASK = {
  primitive: 'video',
  service: 'a/film',
  taskId: '1',
  offerId: 'video/a:a/film',
  provider: 'a',
  account: 'b',
  notes: '{}',
};
const FULL = new GatewayError('rate_limit_exceeded', 'no room');
const OTHER = new Error('gone');

/** Downloads of one file, each of which ends as the test says. */
function startFetching(more: Partial<Parameters<typeof createFetchVideos>[0]> = {}) {
  const running: PromiseWithResolvers<never>[] = [];
  const errors: unknown[] = [];
  const fetching = createFetchVideos({
    pipeline: null as never,
    timeoutMs: 1_000,
    leastPace: 0,
    blobs: {
      write() {
        running.push(Promise.withResolvers<never>());
        return running.at(-1)!.promise;
      },
    },
    onStored: async () => {},
    onError: (error) => void errors.push(error),
    ...more,
  });
  const task = TASK as unknown as Task;
  const settled = () => new Promise(setImmediate);
  /** How often files were fetched, also that of this place now. */
  const count = async (place = 0) => {
    fetching.want(task, place, 'job');
    await settled();
    return running.length;
  };
  return {
    fetching,
    errors,
    running,
    count,
    settled,
    givenUp: () => fetching.givenUp(task, 0)?.code ?? null,
    /** Fails with this error, and resolves with the seconds until the file is fetched again. */
    async pauseAfter(error: unknown): Promise<number> {
      const before = await count();
      running.at(-1)!.reject(error);
      await settled();
      for (let seconds = 0; seconds <= 1_000; seconds += 10) {
        if ((await count()) > before) return seconds;
        vi.advanceTimersByTime(10_000);
      }
      return Infinity;
    },
    async store(stored: object | null = {}) {
      await count();
      running.at(-1)!.resolve(stored as never);
      await settled();
    },
  };
}

/** The reason of a download that was ended because its file came too slowly. */
function tooSlow(): unknown {
  const pace = watchPace({ leastPace: 1, paceMs: 1_000 }, { bytes: 0 });
  pace.begin();
  pace.waits(true);
  vi.advanceTimersByTime(1_000);
  pace.stop();
  return pace.tooSlow.reason;
}

/** The error of a download with this reply; null without one. */
async function errorOf(reply: ReturnType<Parameters<typeof answeringPipeline>[0]>): Promise<unknown> {
  const { promise, resolve } = Promise.withResolvers<unknown>();
  const fetching = createFetchVideos({
    pipeline: answeringPipeline(() => reply),
    timeoutMs: 1_000,
    leastPace: 0,
    blobs: {
      async write(_blob, work) {
        const file = { bytes: 0, write: async (chunk: Uint8Array) => void (file.bytes += chunk.byteLength) };
        await work(file, new AbortController().signal);
        resolve(null);
        return null;
      },
    },
    onStored: async () => {},
    onError: resolve,
  });
  fetching.want(TASK as unknown as Task, 0, 'job');
  return promise;
}

test.each([
  ['has no room', () => FULL],
  ['comes too slowly', tooSlow],
])('a file that %s waits twice as long after each time, up to five minutes', async (_what, error) => {
  const { pauseAfter } = startFetching();
  const pauses: number[] = [];
  for (let times = 0; times < 7; times++) pauses.push(await pauseAfter(error()));
  expect(pauses).toEqual([10, 20, 40, 80, 160, 300, 300]);
});

test('another failure waits ten seconds, and does not change what is known of the file', async () => {
  const { pauseAfter } = startFetching();
  const pauses = [];
  for (const error of [OTHER, OTHER, FULL, OTHER, FULL]) pauses.push(await pauseAfter(error));
  expect(pauses).toEqual([10, 10, 10, 10, 20]);
});

test.each([
  ['no film', { body: '<html>no film</html>' }],
  ['shorter than it said', { headers: { 'content-length': '9999' }, body: tinyMp4(4) }],
])('a file that is %s waits twice as long, and is given up after three times in all', async (_what, reply) => {
  const { pauseAfter, givenUp } = startFetching();
  const error = await errorOf(reply);
  const pauses = [];
  for (const each of [error, FULL, OTHER, error]) pauses.push(await pauseAfter(each));
  expect([pauses, givenUp()]).toEqual([[10, 10, 10, 20], null]);
  expect([await pauseAfter(error), givenUp()]).toEqual([Infinity, 'broken_file']);
});

test('a file that nobody needs any more is not fetched', async () => {
  const { count, errors } = startFetching({ isNeeded: async () => false });
  expect([await count(), await count(), errors]).toEqual([0, 0, []]);
});

test.each([
  ['was stored', {}, 1],
  ['another gateway writes', null, 0],
])('a file that %s is looked at, or not', async (_what, stored, times) => {
  const onStored = vi.fn(async () => {});
  const { store } = startFetching({ onStored });
  await store(stored);
  expect(onStored).toHaveBeenCalledTimes(times);
});

test('a file that is too large is given up at once', async () => {
  const { pauseAfter, givenUp } = startFetching();
  const error = new Error('the call failed', { cause: tooLarge('its file is too large') });
  expect([await pauseAfter(error), givenUp()]).toEqual([Infinity, 'file_too_large']);
});

test('so many failures are known, and with one more all are forgotten', async () => {
  const { count, running, settled } = startFetching();
  const MOST = 10_000;
  const fail = async (place: number) => {
    const fetched = await count(place);
    running.at(-1)!.reject(OTHER);
    await settled();
    return fetched;
  };
  for (let place = 0; place < MOST; place++) await fail(place);
  expect(await count(0)).toBe(MOST);
  expect(await fail(MOST)).toBe(MOST + 1);
  expect(await count(MOST)).toBe(MOST + 1);
  expect(await count(0)).toBe(MOST + 2);
});

test('a file that was stored has not failed', async () => {
  const { pauseAfter, store } = startFetching();
  expect([await pauseAfter(FULL), await pauseAfter(FULL)]).toEqual([10, 20]);
  await store();
  expect(await pauseAfter(FULL)).toBe(10);
});

test('a download that made room for others has not failed, and has its turn again at once', async () => {
  const { count, running, errors, settled } = startFetching({ slowMs: 100, slowMax: 0 });
  expect(await count()).toBe(1);
  vi.advanceTimersByTime(100);
  running[0]!.reject(OTHER);
  await settled();
  expect([running.length, errors]).toEqual([2, []]);
  running[1]!.reject(OTHER);
  await settled();
  expect(errors).toEqual([OTHER]);
});

test('a gateway that stops reports no failed downloads', async () => {
  const { fetching, count, running, errors } = startFetching();
  await count();
  const closed = fetching.close();
  running[0]!.reject(OTHER);
  await closed;
  expect(errors).toEqual([]);
});

describe('a file comes too slowly', () => {
  const start = () => {
    const pace = watchPace({ leastPace: 1_000, paceMs: 20 }, { bytes: 0 });
    onTestFinished(() => pace.stop());
    pace.begin();
    return pace;
  };

  test('by the bytes of one period, whatever came before', () => {
    const pace = start();
    pace.waits(true);
    pace.arrived(1_000);
    vi.advanceTimersByTime(20);
    expect(pace.tooSlow.aborted).toBe(false);
    vi.advanceTimersByTime(20);
    expect(pace.tooSlow.aborted).toBe(true);
  });

  test('and not if each period has enough', () => {
    const pace = start();
    pace.waits(true);
    for (let period = 0; period < 4; period++) {
      pace.arrived(25);
      vi.advanceTimersByTime(20);
    }
    expect(pace.tooSlow.aborted).toBe(false);
  });

  test.each([
    [9, false],
    [10, true],
  ])('if at least half of the period was spent waiting for it: %d ms of 20', (ms, aborted) => {
    const pace = start();
    pace.waits(true);
    vi.advanceTimersByTime(ms);
    pace.waits(false);
    vi.advanceTimersByTime(20 - ms);
    expect(pace.tooSlow.aborted).toBe(aborted);
  });
});
