import { describe, expect, test } from 'vitest';
import { createCatalog } from '../../../src/gateway/catalog/catalog.ts';
import { names, offer } from '../routing/offers.ts';

describe('replacing the offers of a source', () => {
  test('leaves the other sources alone', () => {
    const catalog = createCatalog();
    catalog.replace('config', [offer({ provider: 'A' }), offer({ provider: 'B' })]);
    catalog.replace('tunnel', [offer({ provider: 'C' })]);
    catalog.replace('config', [offer({ provider: 'D' })]);
    expect(names(catalog.resolve('acme/small', 'model').offers).sort()).toEqual(['C', 'D']);
    catalog.replace('config', []);
    expect(names(catalog.offers())).toEqual(['C']);
  });

  test('removes names that nobody offers any more', () => {
    const catalog = createCatalog();
    catalog.replace('config', [offer({ provider: 'A' })]);
    catalog.replace('config', []);
    expect(() => catalog.resolve('acme/small', 'model')).toThrow('Model not found');
    expect(catalog.offers('model')).toEqual([]);
  });

  test('gives the newest source its word where two have the same offer', () => {
    const catalog = createCatalog();
    const [older, newer] = [offer({ provider: 'A', price: 1 }), offer({ provider: 'A', price: 2 })];
    catalog.replace('config', [older]);
    catalog.replace('tunnel', [newer]);
    expect(catalog.resolve('acme/small', 'model').offers).toEqual([newer]);
    catalog.replace('tunnel', []);
    expect(catalog.resolve('acme/small', 'model').offers).toEqual([older]);
  });

  test('refuses the same offer twice and keeps what was there', () => {
    const catalog = createCatalog();
    catalog.replace('config', [offer({ provider: 'A' })]);
    expect(() => catalog.replace('config', [offer({ provider: 'B' }), offer({ provider: 'B' })])).toThrow('twice');
    expect(names(catalog.offers())).toEqual(['A']);
  });

  test('does not change a result that a call holds', () => {
    const catalog = createCatalog();
    catalog.replace('config', [offer({ provider: 'A' })]);
    const held = catalog.resolve('acme/small', 'model');
    catalog.replace('config', [offer({ provider: 'B' })]);
    expect(names(held.offers)).toEqual(['A']);
  });

  test('grows the version', () => {
    const catalog = createCatalog();
    const before = catalog.version();
    catalog.replace('config', []);
    expect(catalog.version()).toBeGreaterThan(before);
  });

  test('lists offers by primitive', () => {
    const catalog = createCatalog();
    catalog.replace('config', [offer({ provider: 'A' }), offer({ provider: 'A', primitive: 'tool' })]);
    expect(catalog.offers('model')).toHaveLength(1);
    expect(catalog.offers('video')).toHaveLength(0);
    expect(catalog.offers()).toHaveLength(2);
  });
});
