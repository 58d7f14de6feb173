import { GatewayError } from '#wire';
import type { Catalog, Speaker, Speakers } from '#gateway';
import { indexTools, searchTools, type SearchIndex } from '../../catalogue/search-index.ts';
import { fullName, offersOf, priceOf, SPOKEN, type Spoken, WORD } from './spoken.ts';

/** An agent or a model in search results. */
export interface SpokenEntry {
  readonly kind: Spoken;
  readonly name: string;
  readonly displayName: string;
  readonly description: string;
}

/** Finds agents and models that can be asked. */
export interface SpokenSearch {
  /**
   * At most `limit` entries of a kind that `admits` accepts. They are sorted by how well they match the words of the
   * query; for an empty query by name.
   */
  find(kind: Spoken, query: string, limit: number, admits: (entry: SpokenEntry) => boolean): readonly SpokenEntry[];
  /** The kinds with at least one entry that `admits` accepts. */
  kinds(admits: (entry: SpokenEntry) => boolean): readonly Spoken[];
  /** The price of an entry, in the form of a tool's price; null if its service no longer exists. */
  price(entry: SpokenEntry): object | null;
}

interface SpokenSearchDeps {
  readonly speakers: () => Partial<Speakers>;
  readonly catalog: Pick<Catalog, 'resolve' | 'version'>;
}

/** Most entries of one kind. */
const ENTRIES_MAX = 2_000;

interface Known {
  readonly speaker: Speaker | undefined;
  readonly entries: ReadonlyMap<string, SpokenEntry>;
  readonly index: SearchIndex;
}

/** Reads the names again when the catalogue of offers has changed. */
export function createSpokenSearch({ speakers, catalog }: SpokenSearchDeps): SpokenSearch {
  const known = new Map<Spoken, Known>();
  let version = -1;

  function of(kind: Spoken): Known {
    if (version !== catalog.version()) known.clear();
    version = catalog.version();
    const speaker = speakers()[kind];
    let found = known.get(kind);
    if (found?.speaker !== speaker || !found) {
      const entries = (speaker?.list(ENTRIES_MAX) ?? []).map((one): SpokenEntry => ({ kind, ...one }));
      const index = indexTools(
        entries.map(({ name, displayName, description }) => ({ name, title: displayName, description })),
        WORD[kind],
      );
      known.set(kind, (found = { speaker, entries: new Map(entries.map((entry) => [entry.name, entry])), index }));
    }
    return found;
  }

  const offers = ({ kind, name }: SpokenEntry) => {
    try {
      return offersOf(catalog, kind, name);
    } catch (error) {
      if (error instanceof GatewayError) return null;
      throw error;
    }
  };

  return {
    find(kind, query, limit, admits) {
      const { entries, index } = of(kind);
      if (query.trim() === '') return [...entries.values()].filter(admits).slice(0, limit);
      return searchTools(query, [[kind, index]], entries.size)
        .toSorted((a, b) => b.score - a.score || (a.name < b.name ? -1 : 1))
        .flatMap(({ name }) => entries.get(name) ?? [])
        .filter(admits)
        .slice(0, limit);
    },
    kinds: (admits) => SPOKEN.filter((kind) => of(kind).entries.values().some(admits)),
    price(entry) {
      const found = offers(entry);
      return found && priceOf(found.offers);
    },
  };
}

/**
 * Whether the address selects an entry (by its full name) and the caller's key allows it (by the name of its service).
 */
export const admitsIn =
  ({ selects, allows }: { selects(name: string): boolean; allows(service: string): boolean }) =>
  ({ kind, name }: SpokenEntry): boolean =>
    selects(fullName(kind, name)) && allows(name);
