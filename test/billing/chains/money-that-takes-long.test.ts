import { expect, test } from 'vitest';
import { createFollowUp, followUpMs } from '../../../src/billing/chains/follow-up.ts';

const row = (id: string) => ({ id, looks: 0, updatedAt: 0 });

test('a row that takes long holds up no other, and is not looked at twice at once', async () => {
  const begun: string[] = [];
  const scheduled: string[] = [];
  const hangs = Promise.withResolvers<undefined>();
  const claims = [[row('hangs'), row('a')], [row('hangs'), row('b')], []];
  const room: number[] = [];
  const looks = createFollowUp({
    network: 'eip155:1',
    rows: {
      claim: async (_network, limit) => (room.push(limit), claims.shift() ?? []),
      schedule: async (id) => void scheduled.push(id),
    },
    carryOn: async ({ id }) => {
      begun.push(id);
      if (id === 'hangs') await hangs.promise;
    },
    pauseMs: null,
    onProblem() {},
    onError() {},
    now: () => 0,
  });
  looks.wake();
  await expect.poll(() => scheduled).toEqual(['a']);
  looks.wake();
  await expect.poll(() => scheduled).toEqual(['a', 'b']);
  expect(begun).toEqual(['hangs', 'a', 'b']);
  expect(room).toEqual([32, 31]);
  hangs.resolve(undefined);
  await looks.close();
  expect(scheduled).toEqual(['a', 'b', 'hangs']);
});

test('what is old is asked for less and less often', () => {
  expect([0, 1, 9].map((looks) => followUpMs(looks, 1_000))).toEqual([500, 750, 15_000]);
  expect(followUpMs(40, 300_000)).toBe(15_000);
  expect(followUpMs(40, 1_200_000)).toBe(60_000);
  expect(followUpMs(1_000, 86_400_000 * 30)).toBe(3_600_000);
});
