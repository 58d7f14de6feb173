import { describe, expect, test } from 'vitest';
import { ENDPOINTS, type CapDoor, type Named } from './routes.ts';
import { useCapWorld } from './world.ts';

/*
 * A cap that is named is a cap, whatever the route, whatever the primitive behind it, and wherever the request names
 * it: nothing that could cost more is forwarded.
 */

const world = useCapWorld();
const LOW = '0.000001';
/** More than the cheap provider may cost, less than the dear one. */
const BETWEEN = '0.007';

async function refused(door: CapDoor, named: Named, why: RegExp) {
  const calls = world.provider.calls();
  const { text, cost } = await world.ask(door, named);
  expect(text).toMatch(why);
  expect(cost).toBe(0n);
  expect(world.provider.calls()).toBe(calls);
}

/** One after the other: nothing may have been forwarded after each. */
async function eachRefused(door: CapDoor, all: readonly Named[], why: RegExp) {
  for (const named of all) await refused(door, named, why);
}

describe.each(ENDPOINTS)('$name', (door) => {
  test('a call that could cost more than its cap is not forwarded', async () => {
    await eachRefused(
      door,
      [{ header: LOW }, { inside: LOW }, { inside: 0.000001 }],
      /max[-_]cost is 0\.000001 USD, but capped\/all may cost 0\.0(05|1) USD/,
    );
  });

  test('of two caps the lower one counts', async () => {
    const both = [
      { header: LOW, inside: '1' },
      { header: '1', inside: LOW },
    ];
    await eachRefused(door, both, /max[-_]cost is 0\.000001 USD/);
  });

  test('a provider that fits serves', async () => {
    for (const named of [{ header: BETWEEN }, { inside: BETWEEN }, { header: BETWEEN, inside: '1' }]) {
      const { text, cost } = await world.ask(door, named);
      // A session stays with the provider that it was opened at, which may be the dear one: then the call is refused.
      if (/in a (session|batch)/.test(door.name) && text.includes('may cost')) {
        expect(cost).toBe(0n);
        continue;
      }
      expect(text).toContain('did complete');
      expect(cost).toBeGreaterThan(0n);
      expect(cost).toBeLessThanOrEqual(5_000n);
    }
  });

  test('a cap that is no amount is refused', async () => {
    const wrong = ['cheap', '-1', '0.1, 0.2', ''].map((header) => ({ header }));
    await eachRefused(door, wrong, /x-max-cost must be a plain decimal of USD/);
    await refused(door, { inside: 'cheap' }, /max_cost must be a plain decimal of USD/);
  });
});

describe.each(ENDPOINTS.filter(({ metadata }) => metadata !== 'none'))('$name, with metadata', (door) => {
  test('a cap that is misspelt is refused, with its name', async () => {
    const misspelt = ['tollgate/maxCost', 'tollgate/max-cost', 'Tollgate/max_cost', 'tollgate/max_cost\0'];
    await eachRefused(
      door,
      misspelt.map((name) => ({ misspelt: name })),
      / must be written tollgate\/max_cost/,
    );
  });

  test("a name that begins as the gateway's do, and is none, is refused with those that there are", async () => {
    const unknown = ['tollgate/cap', 'tollgate/max_costs', 'TOLLGATE/budget', 'tollgate\u2215limit', 'tollgate/'];
    await eachRefused(
      door,
      unknown.map((name) => ({ misspelt: name })),
      / is not known; what begins with tollgate\/ can be .*tollgate\/max_cost/,
    );
  });
});

test.each(ENDPOINTS.filter(({ metadata }) => metadata === 'of the parameters'))(
  '$name: a cap beside the metadata is refused, with its place',
  async (door) => {
    const right =
      /has no effect here: give the cap in (params\._meta|metadata)\[\\"tollgate\/max_cost\\"\], or in the header x-max-cost/;
    await eachRefused(door, [{ beside: 'max_cost' }, { beside: 'maxCost' }], right);
  },
);
