import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { exposedName, exposedNames, formerName, prefixesOf, prefixOf, splitName } from '../../../src/mcp/aggregate/names.ts';
import { distinct, slugOf, slugsOf } from '../../../src/mcp/aggregate/slugs.ts';
import { exposeUri, splitUri } from '../../../src/mcp/aggregate/uris.ts';

const service = fc.oneof(
  fc.stringMatching(/^[A-Za-z0-9._:-]{1,20}(\/[A-Za-z0-9._:-]{1,40}){0,3}$/),
  fc.stringMatching(/^[a-z]{1,8}\/[a-z-]{1,12}$/),
  fc.constantFrom(
    'acme/search',
    'acme-search',
    'acme_search',
    'acme/web-search',
    'acme/web/search',
    'acme-web/search',
    'acme--search',
    'ACME/search',
    'acme.search',
    '3d/print',
    'a',
    '-',
    'acme/search-engine-with-a-long-name',
  ),
);
const tool = fc.oneof(
  fc.string({ unit: 'binary', minLength: 1, maxLength: 100 }),
  fc.stringMatching(/^[a-z_-]{1,70}$/),
  fc.stringMatching(/^[a-z]{1,4}_[0-9a-f]{6}$/),
  fc.constantFrom('a b', 'a.b', 'a/b', 'a__b', '_', '__', '-', '__proto__', 'constructor'),
);
const set = <T>(of: fc.Arbitrary<T>) => fc.uniqueArray(of, { minLength: 1, maxLength: 40 });

const ALLOWED = /^[A-Za-z0-9_]{1,48}$/;

test('every tool of every service has its own name, which all clients and models take', () => {
  fc.assert(
    fc.property(set(fc.tuple(service, set(tool))), (pairs) => {
      const services = new Map(pairs);
      const slugs = slugsOf([...services.keys()]);
      const prefixes = prefixesOf([...services.keys()]);
      const all: string[] = [];
      for (const [name, tools] of services) {
        const prefix = prefixes.get(name)!;
        expect(slugs.get(name)).toMatch(/^[a-z][a-z0-9-]{0,15}$/);
        expect(prefix).toMatch(/^[a-z][a-z0-9_]{0,15}$/);
        const exposed = exposedNames(prefix, tools);
        expect([...exposed.keys()].sort()).toEqual([...tools].sort());
        for (const one of exposed.values()) {
          expect(one).toMatch(ALLOWED);
          expect(splitName(one)!.prefix).toBe(prefix);
        }
        all.push(...exposed.values());
      }
      expect(new Set(slugs.values()).size).toBe(services.size);
      expect(new Set(prefixes.values()).size).toBe(services.size);
      expect(new Set(all).size).toBe(all.length);
    }),
    { numRuns: 500 },
  );
});

test('a name is the same whichever others there are, and in whichever order', () => {
  fc.assert(
    fc.property(set(service), set(tool), (services, tools) => {
      const slugs = slugsOf(services);
      for (const one of services) expect(slugs.get(one)).toBe(slugOf(one));
      const prefixes = prefixesOf(services);
      for (const one of services) expect(prefixes.get(one)).toBe(prefixOf(one));
      expect(slugsOf(services.toReversed())).toEqual(new Map([...slugs].reverse()));
      const prefix = prefixes.get(services[0]!)!;
      const names = exposedNames(prefix, tools);
      for (const one of tools) expect(names.get(one)).toBe(exposedName(prefix, one));
    }),
    { numRuns: 300 },
  );
});

test.each([
  ['acme/search', 'acme--search'],
  ['search', 'search'],
  ['web-search', 'web-search'],
  ['acme-search', 'acme-search'],
])('the slug of %s can be read: %s', (name, slug) => expect(slugOf(name)).toBe(slug));

test.each([
  ['acme/search-engine-with-a-long-name', /^search-en-[0-9a-f]{6}$/],
  ['acme--search', /^acme-sear-[0-9a-f]{6}$/],
  ['Acme/Search', /^search-[0-9a-f]{6}$/],
  ['3d/2d', /^d-[0-9a-f]{6}$/],
  ['42', /^s-[0-9a-f]{6}$/],
  // It would be another's digest.
  ['search-012abc', /^search-01-[0-9a-f]{6}$/],
])('the slug of %s is a head and a digest', (name, slug) => expect(slugOf(name)).toMatch(slug));

test.each([
  ['acme/search', 'acme_search'],
  ['search', 'search'],
  ['acme/web-search', 'acme_web_search'],
  ['acme-web/search', /^search_[0-9a-f]{6}$/],
  ['acme/web/search', /^search_[0-9a-f]{6}$/],
  ['acme/search-engine-with-a-long-name', /^search_en_[0-9a-f]{6}$/],
  ['3d/2d', /^d_[0-9a-f]{6}$/],
  ['42', /^s_[0-9a-f]{6}$/],
  // It would be another's digest.
  ['a/facade', /^facade_[0-9a-f]{6}$/],
])('the names of %s begin with %s', (name, prefix) => expect(prefixOf(name)).toMatch(prefix));

test('a tool keeps its name where clients show it as it is, else it is a head and a digest', () => {
  expect(exposedName('acme_search', 'deep_search')).toBe('acme_search__deep_search');
  expect(exposedName('acme_search', '_x')).toBe('acme_search___x');
  expect(splitName('acme_search___x')).toEqual({ prefix: 'acme_search', rest: '_x' });
  expect(exposedName('s', 'read.file')).toMatch(/^s__read_file_[0-9a-f]{6}$/);
  expect(exposedName('s', 'read-file')).toMatch(/^s__read_file_[0-9a-f]{6}$/);
  expect(exposedName('s', 'a'.repeat(80))).toMatch(/^s__a{38}_[0-9a-f]{6}$/);
  expect(exposedName('s', 'make_facade')).toMatch(/^s__make_facade_[0-9a-f]{6}$/);
  for (const none of ['', '__x', 'x', 'x_y']) expect(splitName(none)).toBeNull();
});

test('names of before are still known', () => {
  expect(formerName('acme--search', 'read-file')).toBe('acme--search__read-file');
  expect(formerName('s', 'a'.repeat(80))).toMatch(/^s__a{50}_[0-9a-f]{6}$/);
});

test('where digests meet, nobody is called by what was the other name, whoever comes first', () => {
  const colliding = (key: string, salt: string) => (salt === '' ? 'same' : `${salt.trim()}-${key.length}`);
  const names = distinct(['b', 'a', 'ccc'], colliding);
  expect(names).toEqual(distinct(['ccc', 'a', 'b'], colliding));
  expect([...names.values()].sort()).toEqual(['1-1', '1-3', '2-1']);
});

describe('URIs', () => {
  const uri = fc.oneof(
    fc.webUrl(),
    fc.string({ unit: 'binary' }),
    fc.stringMatching(/^ui:\/\/[a-z/+]{0,20}$/),
    fc.constantFrom('ui://', 'ui:/x', 'UI://x', '', 'git+https://x', 'file:///{path}', '{+uri}', 'ui://{x}/y'),
  );

  test('come back as they were, and never lead to another service', () => {
    fc.assert(
      fc.property(service, uri, (name, of) => {
        const slug = slugOf(name);
        expect(splitUri(exposeUri(slug, of))).toEqual({ slug, uri: of });
      }),
      { numRuns: 1_000 },
    );
  });

  test('of user interfaces keep their scheme, others begin with the slug', () => {
    expect(exposeUri('acme--ui', 'ui://widget/a.html')).toBe('ui://acme--ui/widget/a.html');
    expect(exposeUri('acme--fs', 'file:///a')).toBe('acme--fs+file:///a');
    for (const none of ['file:///a', 'ui://x', '+x', 'ui:///x', '']) expect(splitUri(none)).toBeNull();
  });
});
