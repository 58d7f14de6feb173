import { readGuide, type Guide } from '../../src/console/pages/guide/guide-pages.ts';
import { ROOT } from '../architecture/source.ts';

export const guide: Guide = await readGuide(ROOT);

/** Tables to look something up in, the contents, and pages for developers. */
const OF_NO_QUESTION =
  /^(?:$|reference\/|decisions(?:\/|$)|clients$|architecture$|principles$|release$|review$|dependencies$|changelog$)/;

/** The pages of the guide that answer a question, each with its words: what has a letter or a digit. */
export const pagesOfQuestions: readonly { readonly path: string; readonly words: number }[] = [...guide.pages.values()]
  .filter(({ path }) => !OF_NO_QUESTION.test(path))
  .map(({ path, text }) => ({ path, words: text.split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word)).length }))
  .toSorted((a, b) => b.words - a.words);
