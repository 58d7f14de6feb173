import { expect, test } from 'vitest';
import { createFreshPage } from '../../../../src/server/http/tagged-page.ts';

test('a page that takes long to make is left as it is for ten times as long, whatever changes', async () => {
  let [at, work, version, made] = [0, 0, 0, 0];
  const page = createFreshPage(
    () => {
      work += 100;
      return [{ made: ++made }];
    },
    { version: () => version, now: () => at, worked: () => work },
  );
  const times = async (later: number) => {
    at += later;
    version += 1;
    return JSON.parse((await page()).body.toString()).data[0].made;
  };
  for (const [later, expected] of [
    [0, 1],
    [1, 1],
    [998, 1],
    [1, 2],
    [999, 2],
    [1, 3],
  ] as const)
    expect(await times(later)).toBe(expected);
});

test('one that does not is made whenever it has changed', async () => {
  let [version, made] = [0, 0];
  const page = createFreshPage(() => [{ made: ++made }], { version: () => version, now: () => 0, worked: () => 0 });
  for (version = 1; version < 10; version += 1)
    expect((await page()).body.toString()).toBe(`{"data":[{"made":${version}}]}`);
});

test('it is made in turns of the event loop, once for all who wait for it', async () => {
  let made = 0;
  function* rows() {
    made += 1;
    for (let row = 0; row < 40; row += 1) {
      const end = performance.now() + 1;
      while (performance.now() < end);
      yield { row };
    }
  }
  const page = createFreshPage(rows, { version: () => 0, now: () => 0 });
  let turns = 0;
  const count = () => void ((turns += 1), (again = setImmediate(count)));
  let again = setImmediate(count);
  const [one, two] = await Promise.all([page(), page()]);
  clearImmediate(again);
  expect(one).toBe(two);
  expect(made).toBe(1);
  expect(turns).toBeGreaterThan(4);
});

test('one whose rows fail is made again for the next', async () => {
  let fails = true;
  const page = createFreshPage(
    () =>
      fails
        ? [
            {
              toJSON: () => {
                throw new Error('no row');
              },
            },
          ]
        : [],
    { version: () => 0, now: () => 0 },
  );
  await expect(page()).rejects.toThrow('no row');
  fails = false;
  expect((await page()).body.toString()).toBe('{"data":[]}');
});
