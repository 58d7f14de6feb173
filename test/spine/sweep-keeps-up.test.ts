import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { adHoc } from '../support/ad-hoc.ts';
import { startSpine, type Spine } from '../support/spine.ts';

// Kept replies of idempotent calls go when their time is over, however many there are: one sweep takes them all.

/** No sweep comes by itself, and no other timer has this time. */
const SWEEP_MS = 3_599_999;
let spine: Spine;
let sweep: () => void;
beforeAll(async () => {
  const timers = vi.spyOn(globalThis, 'setInterval');
  spine = await startSpine({ toml: `[billing]\nsweep_ms = ${SWEEP_MS}\n` });
  sweep = timers.mock.calls.find(([, ms]) => ms === SWEEP_MS)![0] as () => void;
  timers.mockRestore();
});
afterAll(() => spine.stop());

test('all that is over is swept at once', async () => {
  const keep = adHoc(
    "INSERT INTO idempotency (account, key, body_hash, call_id, state, status, headers, body, charged, bytes, created_at, expires_at) VALUES ('a', $1, 'h', 'c', 'done', 200, '{}', '', 0, 1, 1, 2)",
  );
  await spine.app.database.batch(
    Array.from({ length: 2_500 }, (_, index) => ({ statement: keep, params: [`key-${index}`] })),
  );
  const left = async () =>
    Number((await spine.app.database.query(adHoc('SELECT COUNT(*) AS count FROM idempotency')))[0]!['count']);
  sweep();
  await expect.poll(left, { timeout: 60_000, interval: 10 }).toBe(0);
});
