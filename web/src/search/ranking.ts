import MiniSearch from 'minisearch';
import { stem, synonymsOf, wordsOf, wordsOfQuestion } from './words.ts';

export { wordsOfQuestion } from './words.ts';

/** A text of an item. A match in a field with a higher weight counts more. */
interface SearchField<T> {
  readonly name: string;
  readonly weight: number;
  readonly text: (item: T) => string;
}

/** Finds the items that fit a question, the best first. An empty question finds none. */
export type Search<T> = (question: string) => readonly T[];

/** The share of a match by a word of the same meaning. */
const SYNONYM = 0.5;
/** A word of this length may have a wrong letter, or two if it is longer than ten. */
const TYPO_FROM = 5;
const TYPO_SHARE = 0.2;
const PREFIX_FROM = 2;

/**
 * The one ranking of all searches: of the guide, the reference, the marketplace and the playground. Words match by
 * their stem, by their beginning, with a typing error, or by a word of the same meaning. Items with all words of a
 * question come before items with some of them; those with less than half are left out. `weightOf` multiplies the
 * points of an item.
 */
export function createSearch<T>(
  items: readonly T[],
  fields: readonly SearchField<T>[],
  weightOf: (item: T) => number = () => 1,
): Search<T> {
  const index = new MiniSearch<Readonly<Record<string, unknown>>>({
    fields: fields.map(({ name }) => name),
    tokenize: (text) => [...wordsOf(text)],
    processTerm: stem,
  });
  index.addAll(
    items.map((item, id) => ({ id, ...Object.fromEntries(fields.map(({ name, text }) => [name, text(item)])) })),
  );
  const boost = Object.fromEntries(fields.map(({ name, weight }) => [name, weight]));
  return (question) => {
    const roots = [...new Set(wordsOfQuestion(question).map(stem))];
    const meanings = new Map(roots.map((root) => [root, [root, ...synonymsOf(root)]]));
    const terms = [...new Set([...meanings.values()].flat())];
    const own = new Set(roots);
    const found = index.search(terms.join(' '), {
      boost,
      tokenize: (text) => text.split(' '),
      processTerm: (term) => term,
      prefix: (term) => own.has(term) && term.length >= PREFIX_FROM,
      fuzzy: (term) => own.has(term) && term.length >= TYPO_FROM && TYPO_SHARE,
      boostTerm: (term) => (own.has(term) ? 1 : SYNONYM),
    });
    return found
      .map(({ id, score, queryTerms }) => {
        const matched = roots.filter((root) => meanings.get(root)!.some((term) => queryTerms.includes(term))).length;
        const points = score * weightOf(items[id as number]!) * (matched / roots.length) ** 2;
        return { id: id as number, matched, points };
      })
      .filter(({ matched }) => matched * 2 >= roots.length)
      .sort((a, b) => b.points - a.points || a.id - b.id)
      .map(({ id }) => items[id]!);
  };
}
