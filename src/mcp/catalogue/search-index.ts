import { wordsOf } from './search-words.ts';

/** Words of the tools of one server, for searches over many of them. */
export interface SearchIndex {
  /** Names of tools, by the numbers that the postings use. */
  readonly names: readonly string[];
  /** Weighted number of words of each tool. */
  readonly lengths: readonly number[];
  readonly totalLength: number;
  /** By word: numbers of tools and the weight of the word in each, in turn. */
  readonly postings: ReadonlyMap<string, readonly number[]>;
}

interface SearchDocument {
  readonly name: string;
  readonly title: string | null;
  readonly description: string;
}

/** How much more a word says in a name than in a description. */
const WEIGHTS = { name: 3, title: 2, service: 2, description: 1 } as const;

/** `service`: what the service is called, for people and for machines. */
export function indexTools(tools: Iterable<SearchDocument>, service: string): SearchIndex {
  const names: string[] = [];
  const lengths: number[] = [];
  const postings = new Map<string, number[]>();
  let totalLength = 0;
  const ofService = wordsOf(service);
  for (const { name, title, description } of tools) {
    const weights = new Map<string, number>();
    let length = 0;
    // A word counts once in each of them: who says it a hundred times only has the longer text.
    const add = (words: readonly string[], weight: number) => {
      for (const word of new Set(words)) weights.set(word, (weights.get(word) ?? 0) + weight);
      length += words.length * weight;
    };
    add(wordsOf(name), WEIGHTS.name);
    if (title !== null) add(wordsOf(title), WEIGHTS.title);
    add(ofService, WEIGHTS.service);
    add(wordsOf(description), WEIGHTS.description);
    const number = names.length;
    for (const [word, weight] of weights) {
      const places = postings.get(word);
      if (places) places.push(number, weight);
      else postings.set(word, [number, weight]);
    }
    names.push(name);
    lengths.push(length);
    totalLength += length;
  }
  return { names, lengths, totalLength, postings };
}

interface Match<T> {
  readonly of: T;
  /** Name of the tool. */
  readonly name: string;
  readonly score: number;
}

/** Words of a query that count. */
const QUERY_WORDS_MAX = 32;
/** BM25: how fast more of one word stops counting, and how much a long text counts against itself. */
const SATURATION = 1.2;
const LENGTH = 0.75;

/**
 * The tools that have the query's words, by BM25 over all that are searched: at least the `atLeast` best, and all
 * that are as good as the last of those. In no order.
 */
export function searchTools<T>(
  query: string,
  searched: readonly (readonly [T, SearchIndex])[],
  atLeast: number,
): readonly Match<T>[] {
  const words = [...new Set(wordsOf(query))].slice(0, QUERY_WORDS_MAX);
  let count = 0;
  let length = 0;
  const having = new Map<string, number>();
  for (const [, index] of searched) {
    count += index.names.length;
    length += index.totalLength;
    for (const word of words) having.set(word, (having.get(word) ?? 0) + (index.postings.get(word)?.length ?? 0) / 2);
  }
  const mean = length / Math.max(1, count);
  // One place for each tool of all that are searched, in their order.
  const scores = new Float64Array(count);
  let begin = 0;
  for (const [, { names, lengths, postings }] of searched) {
    for (const word of words) {
      const places = postings.get(word);
      if (!places) continue;
      const many = having.get(word)!;
      const rarity = Math.log(1 + (count - many + 0.5) / (many + 0.5));
      for (let i = 0; i < places.length; i += 2) {
        const place = places[i]!;
        const weight = places[i + 1]!;
        const norm = 1 - LENGTH + (LENGTH * lengths[place]!) / mean;
        scores[begin + place]! += (rarity * weight * (SATURATION + 1)) / (weight + SATURATION * norm);
      }
    }
    begin += names.length;
  }
  const least = count > atLeast ? scores.toSorted()[count - atLeast]! : 0;
  const matches: Match<T>[] = [];
  begin = 0;
  for (const [of, { names }] of searched) {
    for (const [i, name] of names.entries()) {
      const score = scores[begin + i]!;
      if (score > 0 && score >= least) matches.push({ of, name, score });
    }
    begin += names.length;
  }
  return matches;
}
