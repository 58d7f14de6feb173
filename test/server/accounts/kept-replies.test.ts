import { describe, expect, it } from 'vitest';
import { createIdempotency } from '../../../src/gateway/call/idempotency.ts';
import { ENGINES, openTestDatabase, type EngineName } from '../../gateway/test-database.ts';

const KIB = 1024;
const MAX = 1024 * KIB;
/** It is looked at after each eighth of what may be kept. */
const SLACK = 1 / 8;
const KEPT = {
  name: 'test/kept-bytes',
  text: 'SELECT COUNT(*) AS rows, SUM(LENGTH(body)) AS bytes FROM idempotency WHERE account = $1',
};

async function world(engine: EngineName, keptRepliesBytesMax = MAX) {
  const clock = { now: 1_700_000_000_000 };
  const database = await openTestDatabase(engine);
  const idempotency = createIdempotency(database, {
    now: () => clock.now,
    runningTtlMs: 3_600_000,
    keptRepliesBytesMax,
  });
  const ask = (key: string, account = 'alice') =>
    idempotency.begin({ account, key, callId: `gen-${account}-${key}`, bodyHash: 'a' });
  return {
    ask,
    /** A call that was answered with so many bytes. */
    async answered(key: string, bytes: number, charged: boolean, account = 'alice') {
      clock.now += 1;
      expect((await ask(key, account)).kind).toBe('new');
      await idempotency.finish(
        { account, key, callId: `gen-${account}-${key}` },
        { status: 200, headers: {}, body: Buffer.alloc(bytes, 'a') },
        charged,
      );
    },
    async kept(account = 'alice') {
      const [row] = await database.query(KEPT, [account]);
      return { rows: Number(row!['rows']), bytes: Number(row!['bytes']) };
    },
  };
}

describe.each(ENGINES)('replies that are kept on %s', (engine) => {
  it('are kept up to a size, one that was charged up to a larger one; of others it is known that they were given', async () => {
    const { ask, answered } = await world(engine, 16 * MAX);
    await answered('free', 64 * KIB, false);
    await answered('large free', 64 * KIB + 1, false);
    await answered('charged', 1024 * KIB, true);
    await answered('large charged', 1024 * KIB + 1, true);
    expect((await ask('free')).kind).toBe('replay');
    expect(await ask('large free')).toEqual({ kind: 'unkept', callId: 'gen-alice-large free' });
    expect((await ask('charged')).kind).toBe('replay');
    expect((await ask('large charged')).kind).toBe('unkept');
  });

  it('of one account take so much and no more: the oldest go', async () => {
    const { ask, answered, kept } = await world(engine);
    await answered('of another', 60 * KIB, false, 'bob');
    for (let n = 0; n < 60; n++) await answered(`free ${n}`, 60 * KIB, false);
    expect((await kept()).bytes).toBeLessThanOrEqual(MAX * (1 + SLACK));
    expect((await ask('free 59')).kind).toBe('replay');
    // It cost nothing: it runs again.
    expect((await ask('free 0')).kind).toBe('new');
    expect((await ask('of another', 'bob')).kind).toBe('replay');
  });

  it('that were charged leave their key behind, so that no repeat is charged', async () => {
    const { ask, answered, kept } = await world(engine);
    for (let n = 0; n < 40; n++) await answered(`charged ${n}`, 60 * KIB, true);
    expect((await kept()).bytes).toBeLessThanOrEqual(MAX * (1 + SLACK));
    expect((await kept()).rows).toBe(40);
    expect((await ask('charged 39')).kind).toBe('replay');
    expect((await ask('charged 0')).kind).toBe('unkept');
  });

  it('count also where they are empty', async () => {
    const { answered, kept } = await world(engine, 64 * KIB);
    for (let n = 0; n < 300; n++) await answered(`free ${n}`, 0, false);
    expect((await kept()).rows).toBeLessThanOrEqual((64 * KIB * (1 + SLACK)) / 512);
  });
});
