import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createHash } from 'node:crypto';
import {
  exposedName,
  exposedNames,
  prefixOf,
  splitName,
  distinct,
  slugOf,
  exposeUri,
  splitUri,
} from '../../../src/mcp/own/aggregate/names.ts';
import { createTables } from '../../../src/mcp/own/aggregate/tables.ts';
import { mergeListings } from '../../../src/mcp/catalogue/tool-catalogue.ts';
import { toolOffer } from '../catalogue/catalogue-world.ts';
import { anyCharacter } from '../../support/any-character.ts';
import { anyWebUrl } from '../../support/any-web-url.ts';

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
  fc.string({ unit: anyCharacter, minLength: 1, maxLength: 100 }),
  fc.stringMatching(/^[a-z_-]{1,70}$/),
  fc.stringMatching(/^[a-z]{1,4}_[0-9][0-9a-z]{12}$/),
  fc.constantFrom('a b', 'a.b', 'a/b', 'a__b', '_', '__', '-', '__proto__', 'constructor'),
);
const set = <T>(of: fc.Arbitrary<T>) => fc.uniqueArray(of, { minLength: 1, maxLength: 40 });

const ALLOWED = /^[A-Za-z0-9_-]{1,48}$/;

test('every tool of every service has its own name, which all clients and models take', () => {
  fc.assert(
    fc.property(set(fc.tuple(service, set(tool))), (pairs) => {
      const services = new Map(pairs);
      const slugs = distinct([...services.keys()], slugOf);
      const prefixes = distinct([...services.keys()], prefixOf);
      const all: string[] = [];
      for (const [name, tools] of services) {
        const prefix = prefixes.get(name)!;
        expect(slugs.get(name)).toMatch(/^[a-z][a-z0-9-]{0,23}$/);
        expect(prefix).toMatch(/^[a-z][a-z0-9_]{0,19}$/);
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
      const slugs = distinct(services, slugOf);
      for (const one of services) expect(slugs.get(one)).toBe(slugOf(one));
      const prefixes = distinct(services, prefixOf);
      for (const one of services) expect(prefixes.get(one)).toBe(prefixOf(one));
      expect(distinct(services.toReversed(), slugOf)).toEqual(new Map([...slugs].reverse()));
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
  ['acme/search-engine-with-a-long-name', /^search-eng-[0-9][0-9a-z]{12}$/],
  ['acme--search', /^acme-searc-[0-9][0-9a-z]{12}$/],
  ['Acme/Search', /^search-[0-9][0-9a-z]{12}$/],
  ['3d/2d', /^d-[0-9][0-9a-z]{12}$/],
  ['42', /^s-[0-9][0-9a-z]{12}$/],
  // It would be another's digest.
  ['search-0123456789abc', /^search-012-[0-9][0-9a-z]{12}$/],
])('the slug of %s is a head and a digest', (name, slug) => expect(slugOf(name)).toMatch(slug));

test.each([
  ['acme/search', 'acme_search'],
  ['search', 'search'],
  ['acme/web-search', 'acme_web_search'],
  ['a/facade', 'a_facade'],
  ['acme-web/search', /^search_[0-9][0-9a-z]{12}$/],
  ['acme/web/search', /^search_[0-9][0-9a-z]{12}$/],
  ['acme/search-engine-with-a-long-name', /^search_[0-9][0-9a-z]{12}$/],
  ['3d/2d', /^d_[0-9][0-9a-z]{12}$/],
  ['42', /^s_[0-9][0-9a-z]{12}$/],
  // It would be another's digest.
  ['a/0123456789abc', /^abc_[0-9][0-9a-z]{12}$/],
])('the names of %s begin with %s', (name, prefix) => expect(prefixOf(name)).toMatch(prefix));

test('a tool keeps its name where clients show it as it is, else it is a head and a digest', () => {
  expect(exposedName('acme_search', 'deep_search')).toBe('acme_search__deep_search');
  expect(exposedName('acme_search', '_x')).toBe('acme_search___x');
  expect(splitName('acme_search___x')).toEqual({ prefix: 'acme_search', rest: '_x' });
  expect(exposedName('s', 'make_facade')).toBe('s__make_facade');
  expect(exposedName('s', 'read.file')).toMatch(/^s__read_file_[0-9][0-9a-z]{12}$/);
  expect(exposedName('s', 'read-file')).toBe('s__read-file');
  expect(exposedName('s', '-')).toBe('s__-');
  expect(exposedName('s', 'of-0123456789abc')).toBe('s__of-0123456789abc');
  expect(exposedName('s', 'a-'.repeat(40))).toMatch(/^s__(a_){15}a_[0-9][0-9a-z]{12}$/);
  expect(exposedName('s', 'a'.repeat(80))).toMatch(/^s__a{31}_[0-9][0-9a-z]{12}$/);
  expect(exposedName('s', 'of_0123456789abc')).toMatch(/^s__of_0123456789abc_[0-9][0-9a-z]{12}$/);
  for (const none of ['', '__x', 'x', 'x_y']) expect(splitName(none)).toBeNull();
});

/** Found in half a minute: 24 bits of their digests are the same, as many as names had once. */
const ALIKE = [
  ['acme/search-engine-with-a-long-name', 'evil/search-engine-6at9v'],
  ['read.file', 'read file 11450'],
] as const;

test('a name that shares 24 bits with another takes nothing of it', () => {
  for (const pair of ALIKE) {
    const [one, other] = pair.map((text) => createHash('sha256').update(text, 'utf16le').digest('hex').slice(0, 6));
    expect(one).toBe(other);
  }
  const [[victim, service], [tool, made]] = ALIKE;
  expect(prefixOf(service)).not.toBe(prefixOf(victim));
  expect(slugOf(service)).not.toBe(slugOf(victim));
  expect(exposedName('s', made)).not.toBe(exposedName('s', tool));
});

test('where digests meet, the first keeps its name, the later ones get others, and it is told', () => {
  const colliding = (key: string, salt: string) => (salt === '' ? 'same' : `${salt.trim()}-${key.length}`);
  const told: string[] = [];
  const names = distinct(['b', 'ccc', 'a', 'd'], colliding, (...of) => told.push(of.join(' ')));
  expect([...names]).toEqual([
    ['b', 'same'],
    ['ccc', '1-3'],
    ['a', '1-1'],
    ['d', '2-1'],
  ]);
  expect(told).toEqual(['same b ccc', 'same b a', 'same b d']);
});

test('of services that would share a name the oldest has it, whatever it is called', () => {
  const told: string[] = [];
  const made: Readonly<Record<string, number>> = { 'acme/old': 1_000, 'a/new': 2_000, 'zeta/new': 2_000 };
  const services = Object.keys(made).toSorted();
  const listing = (service: string) => mergeListings([toolOffer('', { service })], [], () => null);
  const catalogue = { services: () => services, since: (service: string) => made[service]!, service: listing };
  const same = (service: string, salt: string) => (salt === '' ? 'same' : `${salt.trim()}_${service.length}`);
  const tables = createTables(catalogue, (...of) => told.push(of.join(' ')), { slugOf: same, prefixOf: same });
  expect(services.map((service) => tables.tableOf(service)!.prefix)).toEqual(['1_5', 'same', '1_8']);
  expect(tables.prefixed('same')).toBe('acme/old');
  expect(tables.service('same')).toBe('acme/old');
  expect(told).toEqual(['same acme/old a/new', 'same acme/old zeta/new']);
});

describe('URIs', () => {
  const uri = fc.oneof(
    anyWebUrl,
    fc.string({ unit: anyCharacter }),
    fc.stringMatching(/^ui:\/\/[a-z/+]{0,20}$/),
    fc.constantFrom('ui://', 'ui:/x', 'UI://x', '', 'git+https://x', 'file:///{path}', '{+uri}', 'ui://{x}/y'),
  );

  test('come back as they were, and never lead to another service', () => {
    fc.assert(
      fc.property(service, uri, (name, of) => {
        const slug = slugOf(name);
        expect(splitUri(exposeUri(slug, of))).toEqual({ slug, uri: of });
      }),
      { numRuns: process.env['TOLLGATE_DEEP'] === '1' ? 20_000 : 400 },
    );
  });

  test('of user interfaces keep their scheme, others begin with the slug', () => {
    expect(exposeUri('acme--ui', 'ui://widget/a.html')).toBe('ui://acme--ui/widget/a.html');
    expect(exposeUri('acme--fs', 'file:///a')).toBe('acme--fs+file:///a');
    for (const none of ['file:///a', 'ui://x', '+x', 'ui:///x', '']) expect(splitUri(none)).toBeNull();
  });
});
