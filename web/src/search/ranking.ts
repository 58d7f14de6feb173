import MiniSearch from 'minisearch';
import { stem, synonymsOf, termsOf, wordsOfQuestion } from './words.ts';

export { wordsOfQuestion } from './words.ts';

/** A text of an item. A match in a field with a higher weight counts more. */
interface SearchField<T> {
  readonly name: string;
  readonly weight: number;
  readonly text: (item: T) => string;
}

/** Finds the items that fit a question, the best first. An empty question finds none. */
export type Search<T> = (question: string) => readonly T[];

interface SearchOptions<T> {
  /** Multiplies the points of an item. */
  readonly weightOf?: (item: T) => number;
  /** Finds only items with all words, if there are any. This is for lists that are filtered. */
  readonly whole?: boolean;
  /** The share of the words that an item must have. */
  readonly least?: number;
  /** The subjects of an item, in the words of its title. An item whose subject a question names comes first. */
  readonly subjectsOf?: (item: T) => readonly string[];
  /** Items of one group share the first places: each one after the first of its group has that share of its points. */
  readonly group?: { readonly of: (item: T) => string; readonly share: number };
}

/** The share of a match by a word of the same meaning. */
const SYNONYM = 0.5;
/** A word of this length may have a wrong letter, or two if it is longer than ten. */
const TYPO_FROM = 5;
const TYPO_SHARE = 0.2;
const PREFIX_FROM = 2;
const NAMED_SUBJECT = 2;

interface Match {
  readonly id: number;
  readonly matched: number;
  points: number;
}
const best = (a: Match, b: Match): number => b.points - a.points || a.id - b.id;

/**
 * The one ranking of all searches: of the guide, the reference, the marketplace and the playground. Words match by
 * their stem, by their beginning, with a typing error, or by a word of the same meaning. Items with all words of a
 * question come before items with some of them; those with less than half are left out.
 */
export function createSearch<T>(
  items: readonly T[],
  fields: readonly SearchField<T>[],
  { weightOf = () => 1, whole = false, least = 0.5, group, subjectsOf = () => [] }: SearchOptions<T> = {},
): Search<T> {
  const index = new MiniSearch<Readonly<Record<string, unknown>>>({
    fields: fields.map(({ name }) => name),
    tokenize: (text) => [...termsOf(text)],
    processTerm: stem,
  });
  index.addAll(
    items.map((item, id) => ({ id, ...Object.fromEntries(fields.map(({ name, text }) => [name, text(item)])) })),
  );
  const subjects = items.map((item) => subjectsOf(item).map((subject) => wordsOfQuestion(subject).map(stem)));
  const boost = Object.fromEntries(fields.map(({ name, weight }) => [name, weight]));
  return (question) => {
    const roots = [...new Set(wordsOfQuestion(question).map(stem))];
    const meanings = new Map(roots.map((root) => [root, [root, ...synonymsOf(root)]]));
    const terms = [...new Set([...meanings.values()].flat())];
    const own = new Set(roots);
    const known = new Set(terms);
    const found = index.search(terms.join(' '), {
      boost,
      tokenize: (text) => text.split(' '),
      processTerm: (term) => term,
      prefix: (term) => own.has(term) && term.length >= PREFIX_FROM,
      fuzzy: (term) => own.has(term) && term.length >= TYPO_FROM && TYPO_SHARE,
      boostTerm: (term) => (own.has(term) ? 1 : SYNONYM),
    });
    const matches = found
      .map(({ id, score, queryTerms }): Match => {
        const matched = roots.filter((root) => meanings.get(root)!.some((term) => queryTerms.includes(term))).length;
        const named = subjects[id as number]!.some(
          (words) => words.length > 0 && words.every((word) => known.has(word)),
        );
        const weight = weightOf(items[id as number]!) * (named ? NAMED_SUBJECT : 1);
        const points = score * weight * (matched / roots.length) ** 2;
        return { id: id as number, matched, points };
      })
      .sort(best);
    if (group !== undefined) {
      const members = new Map<string, number>();
      for (const match of matches) {
        const name = group.of(items[match.id]!);
        const before = members.get(name) ?? 0;
        match.points *= group.share ** before;
        members.set(name, before + 1);
      }
      matches.sort(best);
    }
    const needed = whole && matches.some(({ matched }) => matched === roots.length) ? 1 : least;
    return matches.filter(({ matched }) => matched >= needed * roots.length).map(({ id }) => items[id]!);
  };
}
