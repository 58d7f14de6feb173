import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { adHoc } from '../support/ad-hoc.ts';
import { freshDatabase } from '../support/fresh-database.ts';
import { ask, startSpine, type Spine } from '../support/spine.ts';

// Two gateways on one PostgreSQL. What one of them writes with a time, the other compares with its own, so both go by
// the clock of the database. A gateway whose machine has another one says so, and works.

const MINUTE_MS = 60_000;
/** How far the clock of the second machine is ahead. */
let ahead = 90 * MINUTE_MS;
let drop: () => Promise<void>;
let right: Spine;
let off: Spine;
beforeAll(async () => {
  const fresh = await freshDatabase(inject('postgresUrl'));
  drop = fresh.drop;
  right = await startSpine({ databaseUrl: fresh.url });
  off = await startSpine({
    databaseUrl: fresh.url,
    provider: right.provider,
    toml: '[billing]\nsweep_ms = 100\n',
    wall: () => Date.now() + ahead,
  });
});
afterAll(async () => {
  await off.stop();
  await right.stop();
  await drop();
});

const ready = async ({ origin }: Spine) => {
  const response = await fetch(`${origin}/health/ready`);
  return [response.status, ((await response.json()) as { checks: Record<string, string> }).checks['clock']] as const;
};
const offset = async ({ origin, adminKey }: Spine) => {
  const response = await fetch(`${origin}/metrics`, { headers: { authorization: `Bearer ${adminKey}` } });
  return Number(/^tollgate_clock_offset_seconds (-?[\d.]+)$/m.exec(await response.text())?.[1]);
};
const told = ({ logs }: Spine) => logs.filter((line) => line.includes('the clock of this machine is not'));

test('a gateway whose clock is 90 minutes ahead takes no lock from a call of another', async () => {
  const held = Promise.withResolvers<void>();
  right.provider.hold(held.promise);
  const before = right.provider.log.length;
  const running = [right, off].map((spine) => spine.post('/chat/completions', ask('hello !tokens:7')));
  await expect.poll(() => right.provider.log.length, { timeout: 60_000 }).toBe(before + 2);
  // A row that is over goes with the sweep, so a sweep has come after the calls began.
  const { database } = right.app;
  await database.query(
    adHoc(
      "INSERT INTO idempotency (account, key, body_hash, call_id, state, status, headers, body, charged, bytes, created_at, expires_at) VALUES ('a', 'k', 'h', 'c', 'done', 200, '{}', '', 0, 1, 1, 2)",
    ),
  );
  const left = async () => (await database.query(adHoc("SELECT key FROM idempotency WHERE key = 'k'"))).length;
  await expect.poll(left, { timeout: 60_000, interval: 20 }).toBe(0);
  held.resolve();
  right.provider.hold(null);
  const ids = await Promise.all(
    running.map(async (asked) => {
      const response = await asked;
      await response.text();
      expect(response.status).toBe(200);
      return response.headers.get('x-generation-id');
    }),
  );
  for (const [index, spine] of [right, off].entries()) {
    const shown = await right.generation(ids[index]!, spine.key);
    expect(shown).toMatchObject({ state: 'settled', tokens_completion: 7 });
    expect(shown.cost_micro_usdc).toBeGreaterThan(0);
  }
  expect(await right.faults()).toEqual([]);
  expect(await off.faults()).toEqual([]);
});

test('it says so in its health, its metrics and its log, and stays ready', async () => {
  await expect.poll(() => ready(right), { timeout: 60_000 }).toEqual([200, 'ok']);
  expect(Math.abs(await offset(right))).toBeLessThan(30);
  expect(told(right)).toEqual([]);
  const ahead = expect.stringMatching(/^is 5\d{3} s ahead of that of the database$/) as string;
  await expect.poll(() => ready(off), { timeout: 60_000 }).toEqual([200, ahead]);
  expect(await offset(off)).toBeGreaterThan(5_000);
  expect(told(off)).toHaveLength(1);
  expect(JSON.parse(told(off)[0]!)).toMatchObject({ level: 'warn', clock_ahead_s: expect.any(Number) as number });
});

test('a clock that is set while the gateway runs is noticed, in both directions', async () => {
  ahead = 0;
  // Whatever asks for the time notices it.
  await (await off.post('/chat/completions', ask('hello !tokens:1'))).text();
  await expect.poll(() => ready(off), { timeout: 60_000 }).toEqual([200, 'ok']);
  await expect
    .poll(() => off.logs.filter((line) => line.includes('is that of the database again')).length, { timeout: 60_000 })
    .toBe(1);
  ahead = -20 * MINUTE_MS;
  const answered = await off.post('/chat/completions', ask('hello !tokens:1'));
  expect(answered.status).toBe(200);
  await answered.text();
  const [, clock] = await ready(off);
  expect(clock).toMatch(/^is 1[12]\d\d s behind that of the database$/);
  expect(await off.faults()).toEqual([]);
});
