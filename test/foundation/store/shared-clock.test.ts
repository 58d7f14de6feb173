import { afterEach, describe, expect, test } from 'vitest';
import { createSharedClock, type SharedClock } from '#store';

// The time of a gateway is that of the database, whatever the clock of its machine says.

const START = 1_800_000_000_000;
const HOUR_MS = 3_600_000;
const clocks: SharedClock[] = [];
afterEach(() => {
  for (const clock of clocks.splice(0)) clock.close();
});

/** A machine and a database, whose clocks the test moves. An answer takes `way.there` and `way.back` milliseconds. */
function startWorld({ ahead = 0, way = { there: 0, back: 0 } } = {}) {
  const world = { steady: 0, database: START, wall: START + ahead, way, looks: 0, told: [] as number[] };
  const pass = (ms: number) => {
    world.steady += ms;
    world.database += ms;
    world.wall += ms;
  };
  const clock = createSharedClock({
    wall: () => world.wall,
    elapsed: () => world.steady,
    everyMs: HOUR_MS,
    onLook: (aheadMs) => world.told.push(aheadMs),
  });
  clocks.push(clock);
  const read = async () => {
    world.looks += 1;
    pass(world.way.there);
    const time = world.database;
    pass(world.way.back);
    return time;
  };
  return { world, pass, clock, read };
}

test.each([0, 20 * 60_000, -90 * 60_000])(
  'a machine that is %i ms ahead has the time of the database',
  async (ahead) => {
    const { world, pass, clock, read } = startWorld({ ahead });
    expect(clock.now()).toBe(world.wall);
    await clock.follow(read);
    expect(clock.now()).toBe(world.database);
    expect(clock.aheadMs()).toBe(ahead);
    pass(1_234);
    expect(clock.now()).toBe(world.database);
    expect(world.told).toEqual([ahead]);
  },
);

test('a machine whose clock is set while it runs keeps the time, and looks', async () => {
  const { world, clock, read, pass } = startWorld();
  await clock.follow(read);
  world.wall += 20 * 60_000;
  pass(10);
  expect(clock.now()).toBe(world.database);
  await clock.sync();
  expect(world.looks).toBe(2);
  expect(clock.now()).toBe(world.database);
  expect(clock.aheadMs()).toBe(20 * 60_000);
});

test('a machine that was suspended, and whose monotonic clock stood still, catches up', async () => {
  const { world, clock, read } = startWorld();
  await clock.follow(read);
  world.wall += HOUR_MS;
  world.database += HOUR_MS;
  clock.now();
  await clock.sync();
  expect(clock.now()).toBe(world.database);
});

test('a long way to the database makes no time worse', async () => {
  const { world, clock, read, pass } = startWorld({ way: { there: 300, back: 100 } });
  await clock.follow(read);
  const error = clock.now() - world.database;
  expect(Math.abs(error)).toBeLessThanOrEqual(200);
  for (const way of [
    { there: 900, back: 0 },
    { there: 0, back: 900 },
    { there: 300, back: 300 },
  ]) {
    world.way = way;
    pass(5_000);
    await clock.sync();
    expect(Math.abs(clock.now() - world.database)).toBeLessThanOrEqual(Math.abs(error));
  }
  // A short way shows the error, and takes it away.
  world.way = { there: 1, back: 1 };
  await clock.sync();
  pass(1_000);
  expect(Math.abs(clock.now() - world.database)).toBeLessThanOrEqual(2);
});

describe('a database whose clock is set back', () => {
  test('is waited for: no time is before an earlier one', async () => {
    const { world, clock, read, pass } = startWorld();
    await clock.follow(read);
    let last = clock.now();
    world.database -= 10 * 60_000;
    await clock.sync();
    for (let minute = 0; minute < 30; minute += 1) {
      pass(60_000);
      const next = clock.now();
      expect(next).toBeGreaterThan(last);
      last = next;
    }
    expect(last).toBe(world.database);
  });

  test('by more than an hour is followed at once', async () => {
    const { world, clock, read } = startWorld();
    await clock.follow(read);
    world.database -= 2 * HOUR_MS;
    await clock.sync();
    expect(clock.now()).toBe(world.database);
  });
});

test('a database that does not answer changes nothing', async () => {
  const { world, clock, read, pass } = startWorld({ ahead: 60_000 });
  let isAway = false;
  await clock.follow(async () => {
    if (isAway) throw new Error('away');
    return read();
  });
  isAway = true;
  await expect(clock.sync()).rejects.toThrow('away');
  pass(60_000);
  expect(clock.now()).toBe(world.database);
});
