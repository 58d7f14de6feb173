import { createPace, ownTurn } from '#wire';

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
  readonly value: T;
  readonly name: string;
  readonly score: number;
}

/** The indexes of servers that list tools of one value. A tool that several of them have is found once. */
export type Searched<T> = readonly [of: T, indexes: readonly SearchIndex[]];

interface SearchOptions<T> {
  readonly limit: number;
  /** The order of matches with the same score. Two with the same name differ in `value`. */
  readonly order: (a: Match<T>, b: Match<T>) => number;
  readonly admits?: (value: T, name: string) => boolean;
  /**
   * An owner has at most OWNER_MAX places in the result, and all owners together half of them if there are enough other
   * matches. Default: null, for no owner.
   */
  readonly ownerOf?: OwnerOf<T>;
}

export type OwnerOf<T> = (value: T, name: string) => string | null;

/** Places of an owner in a result. */
const OWNER_MAX = 2;

/** Makes the function that takes a place of a result for an owner. False: the owner has as many as it may have. */
export function createOwnerPlaces(): (owner: string | null) => boolean {
  const places = new Map<string, number>();
  return (owner) => {
    if (owner === null) return true;
    const before = places.get(owner) ?? 0;
    places.set(owner, before + 1);
    return before < OWNER_MAX;
  };
}

/** Most words of a query. Further words are ignored. */
const QUERY_WORDS_MAX = 32;
/** Parameters of BM25: how fast repetitions of a word stop counting, and how much a long text lowers its score. */
const SATURATION = 1.2;
const LENGTH = 0.75;
/** Look-ups of words and additions to scores in one turn of the event loop: some milliseconds. */
const STEPS_PER_TURN = 150_000;

/** The tools that match words of the query best, best first, scored by BM25 over all searched tools. */
export async function searchTools<T>(
  query: string,
  searched: Iterable<Searched<T>>,
  { limit, order, admits, ownerOf = () => null }: SearchOptions<T>,
): Promise<readonly Match<T>[]> {
  const words = [...new Set(wordsOf(query))].slice(0, QUERY_WORDS_MAX);
  const pace = createPace(STEPS_PER_TURN);
  const all: Searched<T>[] = [];
  let count = 0;
  let length = 0;
  const having = new Map<string, number>(words.map((word) => [word, 0]));
  for (const one of searched) {
    await pace(OF_ONE + words.length * one[1].length);
    all.push(one);
    for (const { names, totalLength, postings } of one[1]) {
      count += names.length;
      length += totalLength;
      for (const word of words) having.set(word, having.get(word)! + (postings.get(word)?.length ?? 0) / 2);
    }
  }
  const mean = length / Math.max(1, count);
  const rarities = words.map((word) => Math.log(1 + (count - having.get(word)! + 0.5) / (having.get(word)! + 0.5)));
  const byRank = (a: Match<T>, b: Match<T>) => b.score - a.score || order(a, b);
  const free = new Best(limit, byRank);
  const owned = new Best(limit, byRank);
  const offer = (match: Match<T>) => {
    if (free.isBeyond(match) && owned.isBeyond(match)) return;
    const owner = ownerOf(match.value, match.name);
    (owner === null ? free : owned).offer(match, owner);
  };
  for (const [value, indexes] of all) {
    const offered = indexes.length === 1 ? null : new Map<string, number>();
    for (const { names, lengths, postings } of indexes) {
      const places = words.map((word) => postings.get(word) ?? NONE);
      await pace(places.reduce((sum, one) => sum + one.length / 2, OF_ONE + words.length + names.length));
      const scores = new Float64Array(names.length);
      for (const [i, ofWord] of places.entries()) addScores(scores, ofWord, { rarity: rarities[i]!, lengths, mean });
      for (let i = 0; i < names.length; i++) {
        const [name, score] = [names[i]!, scores[i]!];
        if (score === 0 || admits?.(value, name) === false) continue;
        if (offered === null) offer({ value, name, score });
        else offered.set(name, Math.max(score, offered.get(name) ?? 0));
      }
    }
    for (const [name, score] of offered ?? []) offer({ value, name, score });
  }
  const room = Math.max(Math.ceil(limit / 2), limit - free.all.length);
  return [...free.all, ...owned.all.slice(0, room)].sort(byRank).slice(0, limit);
}

/** The work of getting what is searched, and of each of its indexes, in the steps of a turn. */
const OF_ONE = 100;
const NONE: readonly number[] = [];

interface Scoring {
  readonly rarity: number;
  readonly lengths: readonly number[];
  readonly mean: number;
}

function addScores(scores: Float64Array, places: readonly number[], { rarity, lengths, mean }: Scoring): void {
  for (let i = 0; i < places.length; i += 2) {
    const place = places[i]!;
    const weight = places[i + 1]!;
    const norm = 1 - LENGTH + (LENGTH * lengths[place]!) / mean;
    scores[place]! += (rarity * weight * (SATURATION + 1)) / (weight + SATURATION * norm);
  }
}

class Best<T> {
  readonly #limit: number;
  readonly #order: (a: T, b: T) => number;
  readonly #best: { readonly item: T; readonly owner: string | null }[] = [];

  constructor(limit: number, order: (a: T, b: T) => number) {
    this.#limit = limit;
    this.#order = order;
  }

  get all(): readonly T[] {
    return this.#best.map(({ item }) => item);
  }

  isBeyond(item: T): boolean {
    const best = this.#best;
    return best.length >= this.#limit && (this.#limit === 0 || this.#order(item, best.at(-1)!.item) >= 0);
  }

  offer(item: T, owner: string | null): void {
    if (this.isBeyond(item)) return;
    const best = this.#best;
    let [from, to] = [0, best.length];
    while (from < to) {
      const middle = (from + to) >> 1;
      if (this.#order(item, best[middle]!.item) < 0) to = middle;
      else from = middle + 1;
    }
    const its = owner === null ? [] : best.filter((one) => one.owner === owner);
    if (its.length >= OWNER_MAX) {
      const worst = best.indexOf(its.at(-1)!);
      if (from > worst) return;
      best.splice(worst, 1);
    }
    best.splice(from, 0, { item, owner });
    if (best.length > this.#limit) best.pop();
  }
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
