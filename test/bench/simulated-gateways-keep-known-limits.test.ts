import { expect, test } from 'vitest';
import type { Cpu, Setting } from '../../bench/simulation/setting.ts';
import { simulate } from '../../bench/simulation/simulate.ts';

const part = { group: 0.4, operation: 0.01, read: 0.1, behind: 0 };
const CPU: Cpu = { gateway: part, database: part, lockPart: 1, proxyMs: 0 };
const TRIP_MS = 2;
const SYNC_MS = 3;

const setting = (changes: Partial<Setting>): Setting => ({
  gateways: 1,
  consumers: 1_000,
  money: 1e9,
  load: { rate: 20 },
  callMs: 100,
  tripMs: TRIP_MS,
  flush: { delayMs: 0, syncMs: SYNC_MS, isShared: false },
  cpu: CPU,
  cores: { count: 64, shared: false },
  beside: 1,
  varies: 0,
  locksWaitForDisk: true,
  fundedEveryMs: 1_000,
  warmMs: 1_000,
  ms: 10_000,
  ...changes,
});

test('a group on known rows takes one round trip, one flush and its work, and one that reads takes a round trip more', () => {
  const known = simulate(setting({}));
  const leastMs = TRIP_MS + SYNC_MS + 2 * (part.group + part.operation);
  expect(known.read).toBe(0);
  expect(known.settleP50).toBeCloseTo(leastMs, 5);
  expect(known.lockP50).toBeGreaterThanOrEqual(leastMs - 1e-6);

  const unknown = simulate(setting({ consumers: 1_000_000, fundedEveryMs: undefined }));
  expect(unknown.read).toBeGreaterThan(0.4);
  expect(unknown.lockP50).toBeGreaterThanOrEqual(leastMs + TRIP_MS + 2 * part.read - 1e-6);
});

test('gateways whose consumers are their own wait for nobody', () => {
  const one = simulate(setting({}));
  const many = simulate(
    setting({ gateways: 16, consumers: 16_000, affinity: 1, fundedEveryMs: undefined, warmMs: 60_000 }),
  );
  expect(many.wrong).toBe(0);
  expect(many.rowWaitMs).toBe(0);
  expect(many.settleP50).toBeCloseTo(one.settleP50, 5);
  expect(many.calls).toBeGreaterThan(16 * 20 * 0.9);
});

test('a consumer at all gateways takes leases, and without leases these wait in a row', () => {
  const setup = { gateways: 8, busiest: 1, fundedEveryMs: undefined, warmMs: 10_000 };
  const leased = simulate(setting(setup));
  expect(leased.read).toBe(0);
  expect(leased.rowWaitMs).toBe(0);
  // Money for few calls is not divided.
  const short = simulate(setting({ ...setup, money: 20 }));
  expect(short.rowWaitMs).toBeGreaterThan(1);
  expect(short.theirLockP50).toBeGreaterThan(leased.theirLockP50 + TRIP_MS);
});

test('who lacks money waits alone', () => {
  const setup = { gateways: 8, consumers: 16_000, fundedEveryMs: undefined, warmMs: 30_000 };
  const [without, beside] = [simulate(setting(setup)), simulate(setting({ ...setup, broke: 20 }))];
  expect(beside.refused).toBeGreaterThan(100);
  expect(beside.theirLockP50).toBeGreaterThan(beside.lockP50 + TRIP_MS);
  expect(beside.lockP50).toBeLessThan(without.lockP50 * 1.1);
});

test('no gateway grants what an account does not have', () => {
  const one = { gateways: 8, busiest: 1, money: 60, callMs: 500, fundedEveryMs: undefined };
  const { calls, refused } = simulate(setting(one));
  expect(refused).toBeGreaterThan(100);
  // Of 160 calls a second that are asked for. There are 60 at once, and each takes at least half a second.
  expect(calls).toBeLessThanOrEqual(60 / 0.5);
  expect(calls).toBeGreaterThan(60);
});

test('the same seed gives the same forecast', () => {
  expect(simulate(setting({ varies: 0.5 }))).toEqual(simulate(setting({ varies: 0.5 })));
});
