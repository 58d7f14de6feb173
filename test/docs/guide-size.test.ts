import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readGuide } from '../../src/console/pages/guide/guide-pages.ts';
import { ROOT } from '../architecture/source.ts';

// A page answers one question. Pages of tables are longer, and the developers' pages are not for readers of the guide.

const PAGE_MAX = 2_500;
/** Rather fewer than more: an old page of several questions becomes shorter ones. */
const ALL_MAX = 99_000;
const NOT_COUNTED =
  /^(?:$|reference\/|decisions(?:\/|$)|clients$|architecture$|principles$|review$|dependencies$|changelog$)/;

const guide = await readGuide(ROOT);
const wordsOf = (text: string): number => text.split(/\s+/).length;
const counted = [...guide.pages.values()]
  .filter(({ path }) => !NOT_COUNTED.test(path))
  .map(({ path, text }) => ({ path, words: wordsOf(text) }));

test(`no page has more than ${PAGE_MAX} words`, () => {
  expect(counted.filter(({ words }) => words > PAGE_MAX).map(({ path }) => path)).toEqual([]);
});

test(`all pages together have at most ${ALL_MAX} words`, () => {
  expect(counted.reduce((sum, { words }) => sum + words, 0)).toBeLessThanOrEqual(ALL_MAX);
});

test('each page of a question is in the contents', () => {
  const listed = guide.chapters.filter(({ title }) => title !== 'More').flatMap(({ pages }) => pages);
  const folders = /^(?:start|use|sell|run|how|reference)\//;
  const missing = [...guide.pages.values()].filter((page) => folders.test(page.path) && !listed.includes(page));
  expect(missing.map(({ path }) => path)).toEqual([]);
});

test('each page begins with its answer, and leads on', () => {
  const folders = /^(?:use|sell|run)\//;
  const dead = [...guide.pages.values()].filter(
    ({ path, file, text }) =>
      folders.test(path) &&
      (!/^# .+\n\n(?![#|]|- |```)/.test(text) ||
        !/^\*?(?:Next|Why it is so):/m.test(readFileSync(join(ROOT, 'docs', file), 'utf8'))),
  );
  expect(dead.map(({ path }) => path)).toEqual([]);
});
