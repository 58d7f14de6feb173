import { describe, expect, test } from 'vitest';
import { createCatalog } from '../../../src/server/catalog/catalog.ts';
import { GatewayError } from '../../../src/foundation/errors.ts';
import { names, offer } from '../../gateway/call/routing/offers.ts';

function catalogOf(...offers: readonly ReturnType<typeof offer>[]) {
  const catalog = createCatalog();
  catalog.replace('test', offers);
  return catalog;
}

const catalog = catalogOf(
  offer({ provider: 'A' }),
  offer({ provider: 'B' }),
  offer({ provider: 'A', service: 'llama3.2:3b' }),
  offer({ provider: 'A', service: 'acme/small:floor' }),
  offer({ provider: 'T', service: 'acme/small', primitive: 'tool' }),
);

describe('a name', () => {
  test('leads to every provider of it', () => {
    const found = catalog.resolve('acme/small', 'model');
    expect(found).toMatchObject({ service: 'acme/small', sort: null, pinned: false });
    expect(names(found.offers)).toEqual(['A', 'B']);
  });

  test('of an earlier version leads to the same providers, is not listed, and goes with its last offer', () => {
    const renamed = catalogOf({ ...offer({ provider: 'A' }), formerName: 'acme/tiny' }, offer({ provider: 'B' }));
    const resolved = renamed.resolve('acme/tiny', 'model');
    expect(resolved).toMatchObject({ service: 'acme/small', sort: null, pinned: false });
    expect(names(resolved.offers)).toEqual(['A', 'B']);
    expect(renamed.offers().map(({ service }) => service)).toEqual(['acme/small', 'acme/small']);
    renamed.replace('test', [offer({ provider: 'B' })]);
    expect(() => renamed.resolve('acme/tiny', 'model')).toThrow('Model not found');
  });

  test('may hold a colon', () => {
    expect(catalog.resolve('llama3.2:3b', 'model')).toMatchObject({
      service: 'llama3.2:3b',
      pinned: false,
      sort: null,
    });
  });

  test('with a suffix chooses the sort', () => {
    expect(catalog.resolve('llama3.2:3b:floor', 'model')).toMatchObject({
      service: 'llama3.2:3b',
      sort: 'price',
      pinned: false,
    });
    expect(catalog.resolve('acme/small:nitro', 'model')).toMatchObject({
      service: 'acme/small',
      sort: 'throughput',
      pinned: false,
    });
  });

  test('that is exact comes before the same with a suffix', () => {
    expect(catalog.resolve('acme/small:floor', 'model')).toMatchObject({ service: 'acme/small:floor', sort: null });
  });

  test('in the direct form leads to one provider', () => {
    const found = catalog.resolve('id-B:acme/small', 'model');
    expect(found).toMatchObject({ service: 'acme/small', sort: null, pinned: true });
    expect(names(found.offers)).toEqual(['B']);
    expect(catalog.resolve('id-A:llama3.2:3b', 'model')).toMatchObject({ service: 'llama3.2:3b', pinned: true });
    expect(catalog.resolve('id-B:acme/small:nitro', 'model')).toMatchObject({
      service: 'acme/small',
      sort: 'throughput',
      pinned: true,
    });
    // Exact before suffix here too: this provider offers a service of that whole name.
    expect(catalog.resolve('id-A:acme/small:floor', 'model')).toMatchObject({
      service: 'acme/small:floor',
      sort: null,
      pinned: true,
    });
  });

  test('belongs to one primitive', () => {
    expect(names(catalog.resolve('acme/small', 'tool').offers)).toEqual(['T']);
    expect(() => catalog.resolve('acme/small', 'agent')).toThrow('Agent not found: acme/small');
  });

  test('does not change what the next call gets', () => {
    catalog.resolve('acme/small:nitro', 'model');
    expect(catalog.resolve('acme/small', 'model').sort).toBeNull();
  });
});

describe('an unknown name', () => {
  const errorOf = (name: string, primitive: 'model' | 'tool' = 'model') => {
    try {
      catalog.resolve(name, primitive);
    } catch (error) {
      if (error instanceof GatewayError) return error;
    }
    throw new Error(`${name} was found`);
  };

  test.each([
    'nothing',
    'ACME/small',
    'acme/small:turbo',
    'id-C:acme/small',
    'A:acme/small',
    'id-B:llama3.2:3b',
    ':floor',
    ':',
    '',
    '__proto__',
    'constructor',
    'id-A:',
  ])('%j is not found', (name) => {
    expect(errorOf(name)).toMatchObject({ code: 'invalid_model', message: `Model not found: ${name}`, param: 'model' });
  });

  test('of a tool is not_found', () => {
    expect(errorOf('nothing', 'tool')).toMatchObject({
      code: 'not_found',
      message: 'Service not found: nothing. GET /api/v1/tools lists all tools',
      param: 'service',
    });
  });

  test('is repeated short and printable', () => {
    expect(errorOf('x'.repeat(1_000_000)).message).toBe(`Model not found: ${'x'.repeat(128)}`);
    expect(errorOf(`a\r\nset-cookie: b${String.fromCodePoint(0x202e)}c`).message).toBe(
      'Model not found: aset-cookie: bc',
    );
  });
});
