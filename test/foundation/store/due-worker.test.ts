import { expect, onTestFinished, test, vi } from 'vitest';
import { createDueWorker } from '#store';

const worker = (turn: Parameters<typeof createDueWorker>[0]['turn'], pauseMs: number | null = null) => {
  const errors: [unknown, number][] = [];
  const made = createDueWorker({ turn, pauseMs, onError: (...failure) => errors.push(failure) });
  onTestFinished(() => made.close());
  return { made, errors };
};

test('a turn that is asked for while one runs comes right after it, once', async () => {
  let turns = 0;
  const first = Promise.withResolvers<void>();
  const { made } = worker(async () => {
    turns += 1;
    if (turns === 1) await first.promise;
  });
  const ran = made.run();
  made.wake();
  made.wake();
  expect(turns).toBe(1);
  first.resolve();
  await ran;
  expect(turns).toBe(2);
});

test('where more is due the next turn comes at once', async () => {
  let left = 3;
  const { made } = worker(async () => --left > 0);
  await made.run();
  expect(left).toBe(0);
});

test('turns come by themselves after a pause, also after one that failed', async () => {
  let turns = 0;
  const { made, errors } = worker(async () => {
    turns += 1;
    if (turns === 2 || turns === 3) throw new Error(`turn ${turns}`);
  }, 1);
  await vi.waitFor(() => expect(turns).toBeGreaterThan(4), { timeout: 60_000 });
  await made.close();
  expect(errors.map(([error, failures]) => [(error as Error).message, failures])).toEqual([
    ['turn 2', 1],
    ['turn 3', 2],
  ]);
});

test('a job is not counted any more when its end is told', async () => {
  const counts: number[] = [];
  const { made, errors } = worker(async (self) => {
    self.start(
      async () => {
        throw new Error('no');
      },
      () => counts.push(self.jobs),
    );
    counts.push(self.jobs);
  });
  await made.run();
  expect(counts).toEqual([1, 0]);
  expect(errors).toHaveLength(1);
});

test('closing waits for what runs, takes no further turn and tells no error', async () => {
  let turns = 0;
  const job = Promise.withResolvers<void>();
  const { made, errors } = worker(async (self) => {
    turns += 1;
    self.start(() => job.promise);
    return true;
  });
  made.wake();
  const closed = made.close();
  expect(made.closed.aborted).toBe(true);
  job.reject(new Error('broken off'));
  await closed;
  made.wake();
  await made.run();
  expect({ turns, errors, jobs: made.jobs }).toEqual({ turns: 1, errors: [], jobs: 0 });
});
