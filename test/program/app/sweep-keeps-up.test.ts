import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { createOutageLog, type Logger } from '#observe';
import { DatabaseError } from '#store';
import { openSweeper } from '../../../src/program/app/sweeper.ts';
import { adHoc } from '../../support/ad-hoc.ts';
import { startSpine, type Spine } from '../../support/spine.ts';

// Kept replies of idempotent calls go when their time is over, however many there are: one sweep takes them all. A
// store that fails holds up no other, and a sweep ends before what it needs is closed.

/** No sweep comes by itself, and no other timer has this time. */
const SWEEP_MS = 3_599_999;
let spine: Spine;
let sweep: () => void;
beforeAll(async () => {
  const timers = vi.spyOn(globalThis, 'setInterval');
  spine = await startSpine({ toml: `[authorization]\nenabled = false\n[billing]\nsweep_ms = ${SWEEP_MS}\n` });
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

test('so is what an authorization server left that was switched off', async () => {
  const { database } = spine.app;
  const row = "INSERT INTO authorization_state (kind, id, payload, expires_at) VALUES ('AccessToken', 'a', '{}', 1)";
  await database.query(adHoc(row));
  sweep();
  await expect.poll(() => database.query(adHoc('SELECT id FROM authorization_state'))).toEqual([]);
});

/** A sweeper on the gateway's ledger. `sweep` is what its timer does; `logged` is what it has warned of. */
function sweeperOf(
  swept: Parameters<typeof openSweeper>[1],
  { now = Date.now, elapsed = () => performance.now() }: { now?: () => number; elapsed?: () => number } = {},
) {
  const logged: (readonly [object, string])[] = [];
  const logger = { warn: (fields: object, text: string) => logged.push([fields, text]) } as unknown as Logger;
  const timers = vi.spyOn(globalThis, 'setInterval');
  const outages = createOutageLog(logger, () => 0);
  const sweeper = openSweeper({ ledger: spine.app.ledger, logger, outages, now, elapsed }, swept, {
    everyMs: SWEEP_MS,
    longestLockMs: 600_000,
  });
  const sweep = timers.mock.calls[0]![0] as () => void;
  timers.mockRestore();
  return { sweeper, sweep, logged };
}

test('a store that fails is named, and the stores after it are swept', async () => {
  const swept = Promise.withResolvers<void>();
  const broken = new Error('broken');
  const { sweeper, sweep, logged } = sweeperOf({
    quotes: { sweep: () => Promise.reject(broken) },
    nonces: {
      async sweep() {
        swept.resolve();
        return 0;
      },
    },
  });
  sweep();
  await swept.promise;
  await sweeper.close();
  expect(logged).toEqual([[{ err: broken, store: 'quotes' }, expect.stringMatching(/old rows/)]]);
});

test('while the database is away, one line says so', async () => {
  const away = new DatabaseError('connect ECONNREFUSED', { code: 'ECONNREFUSED', unavailable: true });
  const broken = new Error('broken');
  const swept = Promise.withResolvers<void>();
  const { sweeper, sweep, logged } = sweeperOf({
    quotes: { sweep: () => Promise.reject(away) },
    blobs: { sweep: () => Promise.reject(broken) },
    nonces: {
      sweep() {
        swept.resolve();
        return Promise.reject(away);
      },
    },
  });
  sweep();
  await swept.promise;
  await sweeper.close();
  // A fault of a store that is not the database's is still told by itself.
  expect(logged).toEqual([
    [{ err: broken, store: 'blobs' }, expect.stringMatching(/old rows of a store/)],
    [{ err: away }, expect.stringMatching(/the database does not answer/)],
  ]);
});

test('sweeps do not overlap, and closing waits for the one that runs', async () => {
  const begun = Promise.withResolvers<void>();
  const gate = Promise.withResolvers<void>();
  let batches = 0;
  let others = 0;
  const { sweeper, sweep, logged } = sweeperOf({
    quotes: {
      async sweep(batch) {
        batches += 1;
        begun.resolve();
        await gate.promise;
        return batches === 1 ? batch : 0;
      },
    },
    nonces: {
      async sweep() {
        others += 1;
        return 0;
      },
    },
  });
  sweep();
  await begun.promise;
  sweep();
  // A second sweep would come to the store after the same wait for the ledger.
  await spine.app.ledger.expire(0, 1);
  await new Promise((resolve) => setImmediate(resolve));
  expect(batches).toBe(1);
  let closed = false;
  const closing = sweeper.close().then(() => (closed = true));
  await new Promise((resolve) => setImmediate(resolve));
  expect(closed).toBe(false);
  gate.resolve();
  await closing;
  // The store had more to remove. That is left to the next start.
  expect({ batches, others, logged }).toEqual({ batches: 1, others: 0, logged: [] });
});

test('after a jump of the time, locks of calls that run do not expire', async () => {
  const clock = { now: Date.now(), elapsed: 0 };
  let swept = Promise.withResolvers<void>();
  const store = {
    async sweep() {
      swept.resolve();
      return 0;
    },
  };
  const { sweeper, sweep, logged } = sweeperOf({ store }, { now: () => clock.now, elapsed: () => clock.elapsed });
  const sweepNow = async () => {
    swept = Promise.withResolvers();
    sweep();
    await swept.promise;
    // The sweep ends in the turn after its last store.
    await new Promise(setImmediate);
  };
  const { ledger, database } = spine.app;
  const id = 'of-a-running-call';
  const expiresAt = clock.now + 600_000;
  const lock = { id, account: spine.account, amount: 5n, prices: [], expiresAt, detail: '{}' };
  expect(await ledger.lock(lock)).toMatchObject({ ok: true });
  const state = async () => (await database.query(adHoc(`SELECT state FROM locks WHERE id = '${id}'`)))[0]!['state'];
  clock.now += 1_200_000;
  clock.elapsed += 1_000;
  await sweepNow();
  expect(await state()).toBe('held');
  expect(logged).toEqual([[{ jump_s: 1_199, rest_s: 600 }, expect.stringContaining('by a jump')]]);
  clock.now += 599_000;
  clock.elapsed += 599_000;
  await sweepNow();
  expect(await state()).toBe('held');
  clock.now += 2_000;
  clock.elapsed += 2_000;
  await sweepNow();
  expect(await state()).toBe('expired');
  await sweeper.close();
});

test('after a jump of the time, what would end the work of others rests, and other rows are removed', async () => {
  let now = 1_000_000;
  let elapsed = 0;
  const asked: string[] = [];
  let isSwept = Promise.withResolvers<void>();
  const store = (name: string, restsAfterJump: boolean) => ({
    restsAfterJump,
    async sweep() {
      asked.push(name);
      if (!restsAfterJump) isSwept.resolve();
      return 0;
    },
  });
  const { sweeper, sweep } = sweeperOf(
    { background: store('background', true), quotes: store('quotes', false) },
    { now: () => now, elapsed: () => elapsed },
  );
  const swept = async (ms: number, jumpMs: number) => {
    elapsed += ms;
    now += ms + jumpMs;
    asked.length = 0;
    isSwept = Promise.withResolvers();
    sweep();
    await isSwept.promise;
    await new Promise((resolve) => setImmediate(resolve));
    return [...asked];
  };
  expect(await swept(1_000, 0)).toEqual(['background', 'quotes']);
  expect(await swept(1_000, 60_000)).toEqual(['quotes']);
  expect(await swept(599_000, 0)).toEqual(['quotes']);
  expect(await swept(1_000, 0)).toEqual(['background', 'quotes']);
  await sweeper.close();
});
