import { expect, test, vi } from 'vitest';
import type { Task } from '../../src/tasks/index.ts';
import { UpstreamFailure } from '../../src/wire/index.ts';
import { createFetchVideos } from '../../src/media/video/run/fetch-video.ts';

const task = (taskId: string, provider: string) =>
  ({ primitive: 'video', service: 'test/film', taskId, provider, account: 'a' }) as unknown as Task;

test('one provider has two downloads at once, and one that failed is not tried again at once', async () => {
  const begun: string[] = [];
  const ends: PromiseWithResolvers<never>[] = [];
  const fetching = createFetchVideos({
    pipeline: null as never,
    timeoutMs: 1_000,
    blobs: {
      write({ source }) {
        begun.push(source);
        ends.push(Promise.withResolvers<never>());
        return ends.at(-1)!.promise;
      },
    },
    onStored: async () => {},
    onError: () => {},
  });
  const slow = ['1', '2', '3'].map((id) => task(id, 'slow'));
  for (const one of slow) fetching.want(one, 0, 'job');
  fetching.want(task('4', 'other'), 0, 'job');
  expect(begun).toHaveLength(3);
  ends[0]!.reject(new Error('no film'));
  await new Promise(setImmediate);
  fetching.want(slow[0]!, 0, 'job');
  expect(begun).toHaveLength(3);
  fetching.want(slow[2]!, 0, 'job');
  expect(begun).toHaveLength(4);
  for (const { reject } of ends) reject(new Error('over'));
  await fetching.close();
});

test('a file that is too large is not fetched again, another failure is tried again after a pause', async () => {
  const clock = vi.spyOn(performance, 'now').mockReturnValue(1_000_000);
  const errors = [
    new UpstreamFailure('too large', { retryable: false, blame: 'nobody', tooLarge: true }),
    new Error('x'),
  ];
  const begun: string[] = [];
  const fetching = createFetchVideos({
    pipeline: null as never,
    timeoutMs: 1_000,
    blobs: { write: async ({ source }) => Promise.reject(errors[begun.push(source) - 1] ?? new Error('over')) },
    onStored: async () => {},
    onError: () => {},
  });
  const both = [task('1', 'a'), task('2', 'b')];
  for (const one of both) fetching.want(one, 0, 'job');
  await new Promise(setImmediate);
  clock.mockReturnValue(2_000_000);
  for (const one of both) fetching.want(one, 0, 'job');
  expect(begun).toHaveLength(3);
  expect(begun[2]).toBe(begun[1]);
  await fetching.close();
});
