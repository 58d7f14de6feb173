import { expect, test } from 'vitest';
import { createFreshPage } from '../../../../src/server/http/tagged-page.ts';

test('a page that takes long to make is left as it is for ten times as long, whatever changes', () => {
  let [at, work, version, made] = [0, 0, 0, 0];
  const page = createFreshPage(
    () => {
      work += 100;
      return ++made;
    },
    { version: () => version, now: () => at, worked: () => work },
  );
  const times = (later: number) => {
    at += later;
    version += 1;
    return Number(page().body.toString());
  };
  expect([times(0), times(1), times(998), times(1), times(999), times(1)]).toEqual([1, 1, 1, 2, 2, 3]);
});

test('one that does not is made whenever it has changed', () => {
  let [version, made] = [0, 0];
  const page = createFreshPage(() => ++made, { version: () => version, now: () => 0 });
  for (version = 1; version < 10; version += 1) expect(page().body.toString()).toBe(String(version));
});
