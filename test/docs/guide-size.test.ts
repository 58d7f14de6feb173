import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ROOT } from '../architecture/source.ts';
import { guide, pagesOfQuestions } from './guide-words.ts';

// A page answers one question. Pages of tables are longer, and the developers' pages are not for readers of the guide.
// `node scripts/measures.ts --words` prints the words of each page.

const PAGE_MAX = 2_500;
/** Rather fewer than more: a page that is added makes another one shorter. */
const ALL_MAX = 70_000;

test(`no page has more than ${PAGE_MAX} words`, () => {
  expect(pagesOfQuestions.filter(({ words }) => words > PAGE_MAX).map(({ path }) => path)).toEqual([]);
});

test(`all pages together have at most ${ALL_MAX} words`, () => {
  expect(pagesOfQuestions.reduce((sum, { words }) => sum + words, 0)).toBeLessThanOrEqual(ALL_MAX);
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
