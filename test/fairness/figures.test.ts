import { expect, it } from 'vitest';
import { openTestDatabase } from '../gateway/test-database.ts';
import { createFigurePages } from '../../src/console/pages/figures/public-routes.ts';

// Pages of figures are made one at a time, and anybody may ask for them.

/** Pages that are made when the test says so. */
async function pagesOf() {
  const database = await openTestDatabase('sqlite');
  const pages = createFigurePages(database, { parts: 0 });
  const made: string[] = [];
  const first = Promise.withResolvers<void>();
  const ask = (network: string, name: string) =>
    pages.page(network, name, false, async () => {
      if (made.length === 0) await first.promise;
      made.push(name);
      return { name };
    });
  return { ask, made, begin: first.resolve };
}

it('a network that asks for many pages gets as many places as it leaves free, and the next one its turn', async () => {
  const { ask, made, begin } = await pagesOf();
  const greedy = await Promise.allSettled(
    Array.from({ length: 40 }, (_, n) => {
      const page = ask('greedy', `greedy ${n}`);
      return Promise.race([page, Promise.resolve('waits')]);
    }),
  );
  expect(greedy.map(({ status }) => status)).toEqual([...Array(16).fill('fulfilled'), ...Array(24).fill('rejected')]);
  const patient = ask('patient', 'patient');
  begin();
  expect(await patient).not.toBeNull();
  expect(made.indexOf('patient')).toBeLessThanOrEqual(2);
  await expect.poll(() => made).toHaveLength(17);
  // The places are free again.
  await ask('greedy', 'another');
});

it('a page that cannot be made does not hold up the others', async () => {
  const database = await openTestDatabase('sqlite');
  const pages = createFigurePages(database, { parts: 0 });
  const broken = pages.page('one', 'broken', false, () => Promise.reject(new Error('no figures')));
  const whole = pages.page('two', 'whole', false, async () => ({}));
  await expect(broken).rejects.toThrow('no figures');
  expect(await whole).not.toBeNull();
});
