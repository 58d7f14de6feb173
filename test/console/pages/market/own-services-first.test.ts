import { expect, test } from 'vitest';
import { namesToCompare, nearestNames } from '#catalog';
import { offer, startMarket, tunnelled } from './market-world.ts';

// Whatever strangers list, the operator's services come first, and a list that has no pages ends after 2,000 services.
// Strangers share what is left: one with many names does not take the places of another.

test.each(['/services', '/services/agent', '/agents'])('%s', async (path) => {
  const { catalog, data } = await startMarket();
  const strangers = Array.from({ length: 2_100 }, (_, at) =>
    tunnelled(offer({ provider: 'stranger', primitive: 'agent', service: `a/${at}` })),
  );
  const small = ['y/one', 'y/two'].map((service) =>
    tunnelled(offer({ provider: 'small', primitive: 'agent', service })),
  );
  const own = ['x/one', 'z/two'].map((service) => offer({ provider: 'own', primitive: 'agent', service }));
  catalog.replace('tunnel', [...strangers, ...small]);
  catalog.replace('config', own);
  const rows = await data<{ name: string }[]>(path);
  expect(rows.slice(0, 3).map(({ name }) => name)).toEqual(['x/one', 'z/two', 'a/0']);
  expect(rows.slice(-2).map(({ name }) => name)).toEqual(['y/one', 'y/two']);
  expect(rows).toHaveLength(2_000);
});

test('the nearest names are looked for among those of the operator, and some of each stranger', () => {
  const strangers = Array.from({ length: 2_100 }, (_, at) =>
    tunnelled(offer({ provider: 'stranger', service: `acme/moder${at}` })),
  );
  const small = tunnelled(offer({ provider: 'small', service: 'small/one' }));
  const names = namesToCompare([...strangers, small, offer({ provider: 'own', service: 'acme/models' })]);
  expect(names).toHaveLength(1_000);
  expect(names[0]).toBe('acme/models');
  expect(names).toContain('small/one');
  // As near as the strangers' ten.
  expect(nearestNames('acme/mode', names)[0]).toBe('acme/models');
});
