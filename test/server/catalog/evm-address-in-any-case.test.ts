import { expect, test } from 'vitest';
import { createCatalog } from '../../../src/server/catalog/catalog.ts';
import { offer } from '../../gateway/call/routing/offers.ts';

const ADDRESS = `0x${'ab12CD34ef'.repeat(4)}`;

test('the direct form of an EVM provider is found whatever the case of its hex, with a suffix too', () => {
  const catalog = createCatalog();
  const at = (service: string) => ({
    ...offer({ provider: 'e', service }),
    id: service,
    provider: { id: ADDRESS.toLowerCase(), name: 'e' },
  });
  catalog.replace('tunnel', [at('Acme/Model:v1'), at('plain')]);
  for (const address of [
    ADDRESS,
    ADDRESS.toLowerCase(),
    ADDRESS.toUpperCase(),
    `0x${ADDRESS.slice(2).toUpperCase()}`,
  ]) {
    for (const service of ['Acme/Model:v1', 'plain']) {
      expect(catalog.resolve(`${address}:${service}`, 'model')).toMatchObject({ service, pinned: true, sort: null });
      expect(catalog.resolve(`${address}:${service}:floor`, 'model')).toMatchObject({
        service,
        pinned: true,
        sort: 'price',
      });
    }
  }
  // The case of everything else still counts.
  for (const name of [
    `${ADDRESS}:PLAIN`,
    `${ADDRESS}:acme/model:v1`,
    `${ADDRESS}:plain:FLOOR`,
    `${ADDRESS}0:plain`,
    `${ADDRESS}:`,
    ADDRESS,
  ])
    expect(() => catalog.resolve(name, 'model'), name).toThrow(`Model not found: ${name}`);
});
