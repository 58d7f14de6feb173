import { describe, expect, test } from 'vitest';
import { createCatalog } from '../../../src/server/catalog/catalog.ts';
import { names, offer, seeded } from '../../gateway/call/routing/offers.ts';

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

  test('costs its own names and nobody else’s', () => {
    const catalog = createCatalog();
    catalog.replace('config', [offer({ provider: 'A' })]);
    const others = catalog.resolve('acme/small', 'model');
    catalog.replace('tunnel', [offer({ provider: 'B', service: 'b/large' })]);
    catalog.replace('tunnel', [offer({ provider: 'B', service: 'b/large', price: 2 })]);
    expect(catalog.resolve('acme/small', 'model')).toBe(others);
  });

  test('leads to the same, whatever came before', () => {
    const random = seeded(3);
    const pick = (of: number) => Math.floor(random() * of);
    const catalog = createCatalog();
    const sources = new Map<string, ReturnType<typeof offer>[]>();
    const services = Array.from({ length: 6 }, (_, index) => `s/${index}`);
    for (let round = 0; round < 300; round++) {
      const source = `source${pick(5)}`;
      // Now and then a source has an offer that another one has as well.
      const provider = pick(10) === 0 ? `P${pick(5)}` : `P-${source}`;
      const offers = services
        .filter(() => pick(2) === 0)
        .flatMap((service) =>
          (['model', 'tool'] as const)
            .filter(() => pick(3) > 0)
            .map((primitive) => offer({ provider, service, primitive, price: pick(9) })),
        );
      catalog.replace(source, offers);
      sources.delete(source);
      sources.set(source, offers);
      const fresh = createCatalog();
      for (const [name, held] of sources) fresh.replace(name, held);
      expect(catalog.offers()).toEqual(fresh.offers());
      for (const primitive of ['model', 'tool'] as const) {
        expect(catalog.offers(primitive)).toEqual(fresh.offers(primitive));
        for (const service of services)
          for (const name of [
            service,
            `${service}:floor`,
            ...['source0', 'source1'].map((one) => `id-P-${one}:${service}`),
          ])
            expect(resolved(catalog, name, primitive)).toEqual(resolved(fresh, name, primitive));
      }
    }
  });
});

function resolved(catalog: ReturnType<typeof createCatalog>, name: string, primitive: 'model' | 'tool'): unknown {
  try {
    return catalog.resolve(name, primitive);
  } catch (error) {
    return String(error);
  }
}
