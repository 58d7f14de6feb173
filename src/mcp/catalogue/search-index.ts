import { ownTurn } from '#wire';

/** An index of the words of one server's tools. A search can use many such indexes. */
export interface SearchIndex {
  /** Names of tools, by the numbers that the postings use. */
  readonly names: readonly string[];
  /** The number of words of each tool, weighted. */
  readonly lengths: readonly number[];
  readonly totalLength: number;
  /** By word: pairs of a tool's number and the word's weight in that tool, in one flat list. */
  readonly postings: ReadonlyMap<string, readonly number[]>;
  /** The memory that it takes, in characters of two bytes. */
  readonly size: number;
}

interface SearchDocument {
  readonly name: string;
  readonly title: string | null;
  readonly description: string;
}

/** The weight of a word by its place: a word in a name counts more than one in a description. */
const WEIGHTS = { name: 3, title: 2, service: 2, description: 1 } as const;

/** Tools that are indexed in one turn of the event loop: less than 10 ms. */
const TOOLS_PER_TURN = 64;
/** Characters of memory for a word of a tool: its place in two lists of numbers, or the entry of a new word. */
const WORD_SIZE = 32;

/** `service`: its names, for people and for machines. Many tools take several turns of the event loop. */
export async function indexTools(tools: Iterable<SearchDocument>, service: string): Promise<SearchIndex> {
  const names: string[] = [];
  const lengths: number[] = [];
  const postings = new Map<string, number[]>();
  let totalLength = 0;
  let size = 0;
  const ofService = wordsOf(service);
  for (const { name, title, description } of tools) {
    // oxlint-disable-next-line no-await-in-loop -- one turn after the other
    if (names.length % TOOLS_PER_TURN === TOOLS_PER_TURN - 1) await ownTurn();
    const weights = new Map<string, number>();
    let length = 0;
    // A repeated word counts once in each field, so that repeating it only makes the text longer.
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
    size += weights.size * WORD_SIZE;
    names.push(name);
    lengths.push(length);
    totalLength += length;
  }
  return { names, lengths, totalLength, postings, size };
}

interface Match<T> {
  readonly of: T;
  /** Name of the tool. */
  readonly name: string;
  readonly score: number;
}

/** Most words of a query. Further words are ignored. */
const QUERY_WORDS_MAX = 32;
/** Parameters of BM25: how fast repetitions of a word stop counting, and how much a long text lowers its score. */
const SATURATION = 1.2;
const LENGTH = 0.75;

/**
 * The tools that match words of the query, scored by BM25 over all searched tools: the `atLeast` best, and all with the
 * same score as the last of these. They are in no particular order.
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
  // One score for each tool of all indexes, in their order.
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

const WORD = /[\p{L}\p{M}\p{N}]+/gu;
/** In `readFile` and `v2Search`, a capital after a small letter or a digit begins a word. */
const HUMP = /(?<=[\p{Ll}\p{N}])(?=\p{Lu})/gu;
/** Scripts without spaces between words. */
const UNSPACED = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Thai}]/u;
/** Longer texts are cut, because they come from providers. */
const TEXT_MAX = 1_024;
/** Further words of a text are left out. A text of 1,024 characters has about 170; in Chinese each pair counts. */
const WORDS_MAX = 256;
const WORD_MAX = 40;

/**
 * The words of a text in the form that the search compares. They are in lower case, identifiers are split, English
 * endings are removed, and text in scripts without spaces becomes pairs of characters. The same text always gives the
 * same words.
 */
function wordsOf(text: string): readonly string[] {
  const words: string[] = [];
  const parts = text.slice(0, TEXT_MAX).normalize('NFKC').replace(HUMP, ' ').toLowerCase().match(WORD) ?? [];
  for (const part of parts) {
    if (words.length >= WORDS_MAX) break;
    if (!UNSPACED.test(part)) words.push(stem(part.slice(0, WORD_MAX)));
    else {
      const characters = Array.from(part);
      if (characters.length === 1) words.push(part);
      for (let i = 1; i < characters.length; i++) words.push(characters[i - 1]! + characters[i]!);
    }
  }
  return words.slice(0, WORDS_MAX);
}

/**
 * A rough stemmer. It only has to treat texts and queries alike: `searches`, `searching` and `search` become the same.
 */
function stem(word: string): string {
  let stemmed = word;
  if (stemmed.length > 4 && stemmed.endsWith('ies')) stemmed = `${stemmed.slice(0, -3)}y`;
  else if (stemmed.length > 3 && stemmed.endsWith('s') && !stemmed.endsWith('ss')) stemmed = stemmed.slice(0, -1);
  if (stemmed.length > 5 && stemmed.endsWith('ing')) stemmed = stemmed.slice(0, -3);
  else if (stemmed.length > 4 && stemmed.endsWith('ed')) stemmed = stemmed.slice(0, -2);
  if (stemmed.length > 3 && stemmed.endsWith('e')) stemmed = stemmed.slice(0, -1);
  const last = stemmed.at(-1);
  return stemmed.length > 3 && last === stemmed.at(-2) && /[a-z]/.test(last!) ? stemmed.slice(0, -1) : stemmed;
}
