import { beforeEach, expect, it, vi } from 'vitest';
import { Claim } from '../../../src/openai/batch-jobs/claim.ts';
import { batchWorld, heldLineOf, Life, LOOK_MS, PRICE } from './batches-world.ts';

// A gateway without room, or without a ledger, cannot settle the answer of a provider for a while. The answer is kept.

beforeEach(() => {
  // The pauses between the attempts, which take 26 seconds.
  vi.spyOn(Claim.prototype, 'rest').mockResolvedValue();
});

/** Attempts at one look at the batch. */
const ATTEMPTS = 4;

it.each([
  ['until a later attempt', ATTEMPTS - 1, 0],
  ['until the next look at the batch', ATTEMPTS, 1],
  ['until the third look at it', 2 * ATTEMPTS + 1, 2],
])('an answer that cannot be settled is kept %s, and charged once', async (_, failures, looks) => {
  const world = await batchWorld('sqlite');
  world.provider.isEager = true;
  const { id } = await world.create(['a', 'b', 'c'].map(heldLineOf));
  let failed = 0;
  const at = world.clock.now;
  await world.work(id, new Life(Infinity), {
    async answer(...of) {
      if (!of[1].includes('"b"') || failed === failures) return world.calls.answer(...of);
      failed += 1;
      return { status: 503, requestId: of[2], body: '{"error":{"message":"no room"}}' };
    },
  });
  const batch = await world.find(id);
  expect(batch).toMatchObject({ status: 'completed', completed: 3, failed: 0 });
  expect(failed).toBe(failures);
  expect(world.clock.now - at).toBe(looks * LOOK_MS);
  expect(world.provider.batches).toHaveLength(1);
  expect(await world.charges(batch)).toEqual([PRICE, PRICE, PRICE]);
  await world.spent(3n * PRICE);
});

it('an answer that can never be settled is told as the error of its last attempt, free, if its lock is gone', async () => {
  const world = await batchWorld('sqlite');
  world.provider.isEager = true;
  const { id } = await world.create([heldLineOf('a')]);
  await world.work(id, new Life(Infinity), {
    async answer(_batch, _body, callId) {
      await world.ledger.release({ id: callId, detail: '{}' });
      return { status: 503, requestId: callId, body: '{"error":{"message":"no room"}}' };
    },
  });
  const batch = await world.find(id);
  expect(batch).toMatchObject({ status: 'completed', completed: 0, failed: 1 });
  expect((await world.results(batch)).errors).toMatchObject([{ custom_id: 'a', response: { status_code: 503 } }]);
  await world.spent(0n);
});
