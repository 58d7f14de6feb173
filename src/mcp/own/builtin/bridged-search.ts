import { GatewayError } from '#wire';
import type { Catalog, TargetAdapter, TargetAdapters } from '#gateway';
import { indexTools, searchTools, type SearchIndex } from '../../catalogue/search-index.ts';
import { fullName, offersOf, priceOf, BRIDGED_KINDS, type BridgedKind, WORD } from './bridged-kinds.ts';

/** An agent or a model in search results. */
export interface BridgedEntry {
  readonly kind: BridgedKind;
  readonly name: string;
  readonly displayName: string;
  readonly description: string;
}

/** Finds agents and models that can be asked. */
export interface BridgedSearch {
  /**
   * At most `limit` entries of a kind that `admits` accepts. They are sorted by how well they match the words of the
   * query; for an empty query by name.
   */
  find(
    kind: BridgedKind,
    query: string,
    limit: number,
    admits: (entry: BridgedEntry) => boolean,
  ): readonly BridgedEntry[];
  /** The kinds with at least one entry that `admits` accepts. */
  kinds(admits: (entry: BridgedEntry) => boolean): readonly BridgedKind[];
  /** The price of an entry, in the form of a tool's price; null if its service no longer exists. */
  price(entry: BridgedEntry): object | null;
}

interface BridgedSearchDeps {
  readonly targets: () => Partial<TargetAdapters>;
  readonly catalog: Pick<Catalog, 'resolve' | 'version'>;
}

/** Most entries of one kind. */
const ENTRIES_MAX = 2_000;

interface Known {
  readonly target: TargetAdapter | undefined;
  readonly entries: ReadonlyMap<string, BridgedEntry>;
  readonly index: SearchIndex;
}

/** Reads the names again when the catalogue of offers has changed. */
export function createBridgedSearch({ targets, catalog }: BridgedSearchDeps): BridgedSearch {
  const known = new Map<BridgedKind, Known>();
  let version = -1;

  function of(kind: BridgedKind): Known {
    if (version !== catalog.version()) known.clear();
    version = catalog.version();
    const target = targets()[kind];
    let found = known.get(kind);
    if (found?.target !== target || !found) {
      const entries = (target?.list(ENTRIES_MAX) ?? []).map((one): BridgedEntry => ({ kind, ...one }));
      const index = indexTools(
        entries.map(({ name, displayName, description }) => ({ name, title: displayName, description })),
        WORD[kind],
      );
      known.set(kind, (found = { target, entries: new Map(entries.map((entry) => [entry.name, entry])), index }));
    }
    return found;
  }

  const offers = ({ kind, name }: BridgedEntry) => {
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
    kinds: (admits) => BRIDGED_KINDS.filter((kind) => of(kind).entries.values().some(admits)),
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
  ({ kind, name }: BridgedEntry): boolean =>
    selects(fullName(kind, name)) && allows(name);
