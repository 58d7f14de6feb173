import { afterAll, beforeAll, expect, test } from 'vitest';
import { adHoc } from '../support/ad-hoc.ts';
import { atThisLoad } from '../support/at-this-load.ts';
import { startSpine, type Spine } from '../support/spine.ts';

// Kept replies of idempotent calls go when their time is over, however many there are: one sweep takes them all.

const SWEEP_MS = 2_000;
let spine: Spine;
beforeAll(async () => {
  spine = await startSpine({ toml: `[billing]\nsweep_ms = ${SWEEP_MS}\n` });
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
  await expect.poll(left, { timeout: atThisLoad(2 * SWEEP_MS), interval: 10 }).toBeLessThan(2_500);
  // Before the next sweep.
  await expect.poll(left, { timeout: 0.9 * SWEEP_MS, interval: 10 }).toBe(0);
});
