import { afterAll, beforeAll, expect, test } from 'vitest';
import { adHoc } from '../../support/ad-hoc.ts';
import { makePlace, type Place } from '../../program/cli/tollgate.ts';
import { openFigures, TODAY, type FiguresWorld } from './figures-world.ts';

let place: Place;
let world: FiguresWorld;
beforeAll(async () => {
  place = await makePlace();
  world = await openFigures('sqlite', { dataDir: place.data });
  await world.calls(TODAY - 3, {}, { primitive: 'tool', charge: 7 });
  await world.calls(TODAY, { account: 'eip155:0xabc' }, { end: 'release' });
  await world.count();
});
afterAll(() => place.clear());

const change = (text: string) => world.spine.app.database.query(adHoc(text));
const breakSums = async () => {
  await change('UPDATE usage_days SET charged = charged + 5');
  await change('DELETE FROM public_days');
  await change('INSERT INTO user_days (day, account_hash) VALUES (1, 1)');
  // As a gateway of before leaves it that notes an account while the migration counts.
  await change('UPDATE known_counts SET users = users + 1');
};
const figures = async () => (await world.read('/analytics/public')).body;
const faults = async () => (await world.spine.faults()) as readonly { readonly name: string }[];

test('by the operator, beside the gateway', async () => {
  const before = await figures();
  await breakSums();
  expect((await faults()).map(({ name }) => name)).toEqual(['analytics']);
  const ask = (key: string) =>
    fetch(`${world.spine.origin}/admin/v1/analytics/rebuild`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}` },
    });
  expect((await ask(world.spine.key)).status).toBe(401);
  const reply = await ask(world.spine.adminKey);
  expect(reply.status).toBe(202);
  expect(await reply.json()).toEqual({ data: { running: true, as_of: null } });
  await world.count();
  expect(await faults()).toEqual([]);
  expect(await figures()).toEqual(before);
});

test('by the command, on the database of a gateway that is stopped', async () => {
  await breakSums();
  await world.stop();
  expect(await place.run(['audit'])).toMatchObject({
    code: 1,
    output: expect.stringContaining('✗ analytics') as string,
  });
  expect(await place.run(['analytics', 'rebuild'])).toMatchObject({
    code: 0,
    output: expect.stringContaining('The figures are made anew, up to 2026-11-21T00:00:01.000Z') as string,
  });
  const { output } = await place.run(['audit']);
  expect(output).toMatch(/✓ analytics +equal/);
  expect(output).toMatch(/✓ hash chains +\d+ batches of 1 chain: each follows the one before/);
});
