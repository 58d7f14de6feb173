import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { GatewayError } from '#errors';
import type { Task } from '#tasks';
import { createFetchVideos, watchPace } from '../../src/media/video/run/fetch-video.ts';

// When a download that has failed is tried again, and when a file comes too slowly, by a clock of the test's own.

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'performance'] });
});
afterEach(() => void vi.useRealTimers());

const TASK = { primitive: 'video', service: 'a/film', taskId: '1', provider: 'a', account: 'b', notes: '{}' };
const FULL = new GatewayError('rate_limit_exceeded', 'no room');
const OTHER = new Error('gone');

/** Downloads of one file, each of which ends as the test says. */
function startFetching(more: { readonly slowMs?: number; readonly slowMax?: number } = {}) {
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
  const count = async () => {
    fetching.want(task, 0, 'job');
    await settled();
    return running.length;
  };
  return {
    fetching,
    errors,
    running,
    count,
    settled,
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
    async store() {
      await count();
      running.at(-1)!.resolve({} as never);
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
