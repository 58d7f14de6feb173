import { expect, test } from 'vitest';
import { keepListening } from '../../../src/mcp/own/aggregate/listen.ts';

/** Listens to a server whose streams end as `streams` say: true after it has sent something. Returns the pauses. */
async function listenTo(streams: (attempt: number) => boolean, attempts: number): Promise<readonly number[]> {
  const pauses: number[] = [];
  const over = new AbortController();
  let attempt = 0;
  await keepListening(
    over.signal,
    async (heard) => {
      if (streams(attempt)) heard();
      if (++attempt === attempts) over.abort();
      return true;
    },
    async (ms) => void pauses.push(ms),
  );
  expect(attempt).toBe(attempts);
  return pauses;
}

test('a server that is away for long is listened to again when it is back', async () => {
  const pauses = await listenTo((attempt) => attempt === 20, 22);
  expect(pauses.slice(0, 9)).toEqual([1, 2, 4, 8, 16, 32, 64, 120, 120].map((seconds) => seconds * 1_000));
  expect(pauses.slice(19)).toEqual([120_000, 1_000, 2_000]);
});

test('a server without a stream is asked once', async () => {
  let asked = 0;
  await keepListening(new AbortController().signal, async () => {
    asked += 1;
    return false;
  });
  expect(asked).toBe(1);
});
