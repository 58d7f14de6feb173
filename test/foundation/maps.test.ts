import { describe, expect, it, test } from 'vitest';
import { IdleMap, RecentMap, SharedCache, TransientMap } from '../../src/foundation/maps.ts';

test('a map of what is under way keeps its entries and their order while others come and go', () => {
  const map = new TransientMap<number, string>();
  map.set(-1, 'first');
  map.set(-2, 'second');
  for (let key = 0; key < 1_000; key += 1) {
    map.set(key, 'brief');
    expect(map.delete(key)).toBe(true);
    expect(map.delete(key)).toBe(false);
  }
  expect([...map]).toEqual([
    [-1, 'first'],
    [-2, 'second'],
  ]);
  expect([map.size, map.get(-1), map.has(-2), map.has(5)]).toEqual([2, 'first', true, false]);
});

test('all entries can go while the map is walked', () => {
  const map = new TransientMap<number, number>();
  for (let key = 0; key < 500; key += 1) map.set(key, key);
  const seen = new Set<number>();
  for (const [key] of map) {
    seen.add(key);
    map.delete(key);
  }
  expect([seen.size, map.size]).toEqual([500, 0]);
});

test('a map of recent entries forgets those used longest ago, and none that was deleted comes back', () => {
  const map = new RecentMap<number>(10);
  for (let key = 0; key < 100; key += 1) {
    map.set(String(key), key);
    expect(map.get('0')).toBe(0);
  }
  const kept = Array.from({ length: 100 }, (_, key) => map.get(String(key))).filter((value) => value !== undefined);
  expect(kept.length).toBeLessThanOrEqual(20);
  expect(kept).toContain(99);
  map.delete('0');
  expect(map.get('0')).toBeUndefined();
});

test('a map of values made on demand drops idle ones when it has many, and no other', () => {
  const busy = { uses: 1 };
  let made = 0;
  const map = new IdleMap(
    (key) => {
      made += 1;
      return key === 'busy' ? busy : { uses: 0 };
    },
    ({ uses }) => uses === 0,
  );
  expect(map.get('busy')).toBe(busy);
  expect(map.get('idle')).toBe(map.get('idle'));
  for (let key = 0; key < 10_000; key += 1) map.get(String(key));
  expect([...map.values()].length).toBeLessThan(600);
  const before = made;
  expect(map.get('busy')).toBe(busy);
  expect(made).toBe(before);
});

describe('a cache that owners share', () => {
  const cacheOf = (most: number) => new SharedCache<string>(most * 2_048);
  const put = (cache: SharedCache<string>, key: string, owner = key) => cache.set(key, key, 1_024, owner);

  it('loses the least recently used entry of the owner that has most', () => {
    const cache = cacheOf(4);
    put(cache, 'calm');
    for (const key of ['a', 'b', 'c', 'd', 'e']) put(cache, key, 'busy');
    expect(['calm', 'a', 'b', 'c', 'd', 'e'].map((key) => cache.get(key))).toEqual([
      'calm',
      undefined,
      undefined,
      'c',
      'd',
      'e',
    ]);
  });

  it('loses that of the owner who was there the longest ago, where all have as much', () => {
    const cache = cacheOf(2);
    put(cache, 'a');
    put(cache, 'b');
    cache.get('a');
    put(cache, 'c');
    expect(['a', 'b', 'c'].map((key) => cache.get(key))).toEqual(['a', undefined, 'c']);
  });

  it('does not keep what is larger than all of it, and forgets what it had under the name', () => {
    const cache = cacheOf(2);
    put(cache, 'a');
    put(cache, 'b');
    cache.set('a', 'large', 1_000_000, 'a');
    expect([cache.get('a'), cache.get('b')]).toEqual([undefined, 'b']);
    put(cache, 'c');
    expect([cache.get('b'), cache.get('c')]).toEqual(['b', 'c']);
  });
});
