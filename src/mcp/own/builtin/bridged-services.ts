import type { Primitive } from '#config';
import type { Access } from '#accounts';
import { type Catalog, type Offer, viewToolCallPrice } from '#catalog';
import type { TargetAdapter, TargetAdapters } from '#bridge';
import { getOrInsert, ownTurn } from '#wire';
import { GatewayError } from '#errors';
import {
  createOwnerPlaces,
  indexTools,
  type Searched,
  searchTools,
  type SearchIndex,
} from '../../catalogue/search-index.ts';

/** Primitives that a tool call can ask: agents, and models of all kinds. Each is the prefix of its full names. */
export const BRIDGED_KINDS = ['a2a', 'model', 'image', 'video'] as const;
export type BridgedKind = (typeof BRIDGED_KINDS)[number];

export const WORD = {
  a2a: 'agent',
  model: 'model',
  image: 'image model',
  video: 'video model',
} as const satisfies Record<BridgedKind, string>;

/** The argument that names the service, if a tool serves all services of the kind. */
export const NAMED_BY = {
  a2a: 'agent',
  model: 'model',
  image: 'model',
  video: 'model',
} as const satisfies Record<BridgedKind, string>;

export const PRIMITIVE = {
  a2a: 'agent',
  model: 'model',
  image: 'image',
  video: 'video',
} as const satisfies Record<BridgedKind, Primitive>;

/** An agent or a model of any kind that the gateway offers as an MCP server. */
export interface BridgedService {
  readonly kind: BridgedKind;
  readonly name: string;
  readonly target: TargetAdapter;
}

/** The agent or model of an address, such as `a2a/weather`; null for an unknown name. */
export function bridgedService(targets: Partial<TargetAdapters>, service: string): BridgedService | null {
  for (const kind of BRIDGED_KINDS) {
    const target = service.startsWith(`${kind}/`) ? targets[kind] : undefined;
    const name = service.slice(kind.length + 1);
    if (target?.has(name)) return { kind, name, target };
  }
  return null;
}

/** The name of an agent or a model that distinguishes it from tool services. */
export const fullName = (kind: BridgedKind, name: string): string => `${kind}/${name}`;

/** The offers of an agent or a model, cheapest first. Throws GatewayError for an unknown name. */
export function offersOf(
  catalog: Pick<Catalog, 'resolve'>,
  kind: BridgedKind,
  name: string,
): { readonly service: string; readonly offers: readonly Offer[] } {
  const { service, offers } = catalog.resolve(name, PRIMITIVE[kind]);
  return { service, offers: offers.toSorted((a, b) => compare(rateOf(a), rateOf(b)) || (a.id < b.id ? -1 : 1)) };
}

export const priceOf = (offers: readonly Offer[]) => viewToolCallPrice(offers[0]!, '', offers);

const rateOf = ({ price: { rates } }: Offer): bigint =>
  (rates.call ?? 0n) + (rates.prompt ?? 0n) + (rates.completion ?? 0n) + (rates.image ?? 0n) + (rates.second ?? 0n);

const compare = (a: bigint, b: bigint) => (a < b ? -1 : a > b ? 1 : 0);

export interface BridgedEntry {
  readonly kind: BridgedKind;
  readonly name: string;
  readonly displayName: string;
  readonly description: string;
}

export interface BridgedSearch {
  /**
   * At most `limit` entries of a kind that `admits` accepts. They are sorted by how well they match the words of the
   * query; for an empty query as they are listed. Whom `ownerOf` names has at most two of them.
   */
  find(
    kind: BridgedKind,
    query: string,
    limit: number,
    admits: (entry: BridgedEntry) => boolean,
    ownerOf: (entry: BridgedEntry) => string | null,
  ): Promise<readonly BridgedEntry[]>;
  /** The stranger who alone sells an entry; null if the operator or somebody whom the operator has let in does. */
  stranger(entry: BridgedEntry): string | null;
  kinds(admits: (entry: BridgedEntry) => boolean): readonly BridgedKind[];
  /** The price of an entry, in the form of a tool's price; null if its service no longer exists. */
  price(entry: BridgedEntry): object | null;
}

interface BridgedSearchDeps {
  readonly targets: () => Partial<TargetAdapters>;
  readonly catalog: Pick<Catalog, 'resolve' | 'version'>;
  readonly isStranger: (offer: Offer) => boolean;
}

const ENTRIES_MAX = 2_000;
const ENTRIES_PER_TURN = 64;

interface KnownEntries {
  readonly target: TargetAdapter | undefined;
  readonly entries: ReadonlyMap<string, BridgedEntry>;
}

/** Reads the names again when the catalogue of offers has changed. An entry that stays as it was keeps its index. */
export function createBridgedSearch({ targets, catalog, isStranger }: BridgedSearchDeps): BridgedSearch {
  const known = new Map<BridgedKind, KnownEntries>();
  const indexes = new Map<BridgedKind, Map<string, SearchIndex>>();
  let version = -1;

  function entriesOf(kind: BridgedKind): KnownEntries {
    if (version !== catalog.version()) known.clear();
    version = catalog.version();
    const target = targets()[kind];
    let knownEntries = known.get(kind);
    if (knownEntries?.target !== target || !knownEntries) {
      const entries = (target?.list(ENTRIES_MAX) ?? []).map((one): BridgedEntry => ({ kind, ...one }));
      known.set(kind, (knownEntries = { target, entries: new Map(entries.map((entry) => [entry.name, entry])) }));
    }
    return knownEntries;
  }

  /** An index of each entry, because any provider can change an entry at any time. */
  async function indexed(kind: BridgedKind, entries: KnownEntries['entries']) {
    // Requests at the same time share what each of them has made.
    const indexOf = getOrInsert(indexes, kind, () => new Map<string, SearchIndex>());
    const present = new Set<string>();
    const all: Searched<BridgedEntry>[] = [];
    let count = 0;
    for (const entry of entries.values()) {
      const { name, displayName: title, description } = entry;
      const text = JSON.stringify([name, title, description]);
      let index = indexOf.get(text);
      if (index === undefined) {
        if (++count % ENTRIES_PER_TURN === 0) await ownTurn();
        index = await indexTools([{ name, title, description }], WORD[kind]);
      }
      indexOf.set(text, index);
      present.add(text);
      all.push([entry, [index]]);
    }
    for (const text of indexOf.keys()) if (!present.has(text)) indexOf.delete(text);
    return all;
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
    async find(kind, query, limit, admits, ownerOf) {
      const { entries } = entriesOf(kind);
      if (query.trim() === '') {
        const takePlace = createOwnerPlaces();
        return entries
          .values()
          .filter((entry) => admits(entry) && takePlace(ownerOf(entry)))
          .take(limit)
          .toArray();
      }
      const searched = (await indexed(kind, entries)).filter(([entry]) => admits(entry));
      const isLast = (entry: BridgedEntry) => Number(ownerOf(entry) !== null);
      const matches = await searchTools(query, searched, {
        limit,
        ownerOf,
        order: (a, b) => isLast(a.value) - isLast(b.value) || (a.name < b.name ? -1 : 1),
      });
      return matches.map(({ value: entry }) => entry);
    },
    stranger(entry) {
      const { offers: its } = offers(entry) ?? { offers: [] };
      return its.every(isStranger) ? (its[0]?.provider.id ?? null) : null;
    },
    kinds: (admits) => BRIDGED_KINDS.filter((kind) => entriesOf(kind).entries.values().some(admits)),
    price(entry) {
      const list = offers(entry);
      return list && priceOf(list.offers);
    },
  };
}

/**
 * Whether the address selects an entry (by its full name) and the caller's key allows it (by the name of its service).
 */
export const admitsIn =
  ({ selects, access }: { selects(name: string): boolean; readonly access: Access | null }) =>
  ({ kind, name }: BridgedEntry): boolean =>
    selects(fullName(kind, name)) && (access === null || access.allows(PRIMITIVE[kind], name, null));
