import { expect, test } from 'vitest';
import { createPageEntries, ListedPages } from '#http';
import { inTurns } from '#wire';

interface Thing {
  readonly name: string;
}

const groupsOf = (count: number) => Array.from({ length: count }, (_, at) => [{ name: `thing ${at} "文"` }]);

test('an entry is written once for the things that it shows, whatever the pages', async () => {
  let version = 1;
  const pages = new ListedPages(() => version);
  let written = 0;
  const entries = createPageEntries((group: readonly Thing[]) => {
    written += 1;
    return { names: group.map(({ name }) => name) };
  });
  const groups = groupsOf(100);
  const members = (from: number, things = groups) => ({
    object: 'list',
    data: entries(things.slice(from)),
    none: entries([]),
    total: { count: things.length, next: null },
  });
  const valueOf = (from: number, things = groups) => ({
    object: 'list',
    data: things.slice(from).map((group) => ({ names: group.map(({ name }) => name) })),
    none: [],
    total: { count: things.length, next: null },
  });
  const first = await pages.page('0', 'a', () => members(0));
  expect(first.body.toString()).toBe(JSON.stringify(valueOf(0)));
  expect(written).toBe(100);
  const other = await pages.page('50', 'a', () => members(50));
  expect(other.body.toString()).toBe(JSON.stringify(valueOf(50)));
  expect(other.etag).not.toBe(first.etag);
  expect(written).toBe(100);
  // The same page, without another look at its data.
  expect(await pages.page('0', 'b', () => expect.unreachable())).toBe(first);
  version += 1;
  const again = await pages.page('0', 'a', () => members(0));
  expect(again).toEqual(first);
  expect(written).toBe(100);
  // Another thing beside the first one.
  const changed = [[...groups[0]!, { name: 'new' }], ...groups.slice(1)];
  version += 1;
  const now = await pages.page('0', 'a', () => members(0, changed));
  expect(now.body.toString()).toBe(JSON.stringify(valueOf(0, changed)));
  expect(now.etag).not.toBe(first.etag);
  expect(written).toBe(101);
});

test('pages are made one at a time, those who ask take turns, and one alone does not take all places', async () => {
  const pages = new ListedPages(() => 1);
  const entries = createPageEntries((group: readonly Thing[]) => group[0]!);
  const order: string[] = [];
  const ask = (asker: string, name: string) =>
    pages
      .page(name, asker, () => ({ data: entries(groupsOf(10)) }))
      .then(
        () => order.push(name),
        (error: { readonly code: string }) => order.push(error.code),
      );
  const all = Array.from({ length: 20 }, (_, at) => ask('greedy', `greedy ${at}`));
  all.push(ask('other', 'other'));
  await Promise.all(all);
  expect(order.filter((one) => one === 'rate_limit_exceeded')).toHaveLength(4);
  expect(order.filter((one) => one !== 'rate_limit_exceeded').indexOf('other')).toBeLessThan(3);
  // A page that was refused is made when there is room again.
  expect(await ask('greedy', 'greedy 19')).toBe(order.length);
  expect(order.at(-1)).toBe('greedy 19');
});

test('an error is not kept', async () => {
  const pages = new ListedPages(() => 1);
  const fails = () => {
    throw new Error('no');
  };
  await expect(pages.page('a', 'x', fails)).rejects.toThrow('no');
  expect((await pages.page('a', 'x', () => ({ data: 1 }))).body.toString()).toBe('{"data":1}');
});

test('kept pages have 32 MiB', async () => {
  const pages = new ListedPages(() => 1);
  const text = 'x'.repeat(9 * 1024 * 1024);
  let made = 0;
  const page = (key: string) =>
    pages.page(key, 'x', () => {
      made += 1;
      return { key, text };
    });
  for (const key of ['1', '2', '3', '4', '4', '3', '2']) await page(key);
  expect(made).toBe(4);
  await page('1');
  expect(made).toBe(5);
});

test('small pieces of work share a turn of some milliseconds, and no more', async () => {
  let turns = 0;
  let isOver = false;
  const count = () => {
    turns += 1;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  const turnOf: number[] = [];
  function* work(): Generator<void, void, undefined> {
    for (let piece = 0; piece < 20; piece++) {
      const end = performance.now() + 2;
      while (performance.now() < end);
      turnOf.push(turns);
      yield;
    }
  }
  await inTurns(work(), 5);
  isOver = true;
  const most = Math.max(
    ...Map.groupBy(turnOf, (turn) => turn)
      .values()
      .map(({ length }) => length),
  );
  expect(most).toBeLessThanOrEqual(3);
});
