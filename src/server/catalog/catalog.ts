import { type ErrorCode, GatewayError } from '#errors';
import { printable } from '#security';
import { type Primitive, SORT_SUFFIXES } from '#config';
import { type Offer, directForm } from './offers.ts';
import { createLatelyServed } from './lately-served.ts';

export interface Resolved {
  /** The name of the service, without pin and suffix. */
  readonly service: string;
  readonly offers: readonly Offer[];
  /** From the suffix: `:floor` means price, `:nitro` means throughput. */
  readonly sort: 'price' | 'throughput' | null;
  /** True for the direct form `<provider_pubkey>:<name>`. */
  readonly pinned: boolean;
}

export interface Catalog {
  /**
   * Throws GatewayError `invalid_model` (`Model not found: <name>`) or `not_found`. For a name whose last provider left
   * a moment ago it throws `no_provider_healthy`.
   */
  resolve(name: string, primitive: Primitive): Resolved;
  /**
   * Whether the name exists: `resolve` finds it, or refuses it for another reason than that it does not exist, such as
   * `no_provider_healthy` because its provider left a moment ago.
   */
  knows(name: string, primitive: Primitive): boolean;
  offers(primitive?: Primitive): readonly Offer[];
  /** Replaces all offers of one source (the configuration file, or a provider's tunnel) in one step. */
  replace(source: string, offers: readonly Offer[]): void;
  /**
   * Removes a source whose provider left `agoMs` milliseconds ago. `offers`: its offers, even if they were not listed.
   * Their names stay known for a while.
   */
  depart(source: string, offers: readonly Offer[], agoMs: number): void;
  /** Increases with every replacement. Data that was derived from the offers stays valid while it is unchanged. */
  version(): number;
}

/**
 * The offers of one primitive by name. The Resolved objects are made once, so that resolving a name allocates nothing.
 */
interface Index {
  readonly byName: Map<string, Resolved>;
  readonly byDirectForm: Map<string, Resolved>;
}

const SUFFIXES = Object.entries(SORT_SUFFIXES);
/** A direct form that begins with an EVM address. Its hex digits may have either case; ids have lower case. */
const EVM_PIN = /^0x[0-9a-f]{40}:/i;
const ADDRESS_LENGTH = 42;
/** Seconds after which a provider that reconnects is usually back. */
const BACK_S = 5;

const MODEL = { code: 'invalid_model', kind: 'Model', hint: '', param: 'model' } as const;
const NOT_FOUND = {
  model: MODEL,
  image: MODEL,
  video: MODEL,
  tool: {
    code: 'not_found',
    kind: 'Service',
    hint: '. GET /api/v1/tools lists all tools',
    param: 'service',
  },
  agent: { code: 'not_found', kind: 'Agent', hint: '. GET /api/v1/agents lists all agents', param: 'agent' },
} as const satisfies Record<
  Primitive,
  { readonly code: ErrorCode; readonly kind: string; readonly hint: string; readonly param: string }
>;

/**
 * All offers of all sources, by name. Names are case-sensitive and may contain colons, so they are looked up in this
 * order: the exact name, the name with a `:floor` or `:nitro` suffix, the direct form `<provider id>:<name>`, the
 * direct form with a suffix. Where the direct form is looked up, a former name is found too.
 */
export function createCatalog(elapsed: () => number = () => performance.now()): Catalog {
  const lately = createLatelyServed(elapsed);
  const sources = new Map<string, readonly Offer[]>();
  const indexes = new Map<Primitive, Index>();
  const listings = new Map<Primitive | 'all', readonly Offer[]>();
  const held = createHoldings();
  let version = 0;

  const indexOf = (primitive: Primitive): Index => {
    let index = indexes.get(primitive);
    if (!index) indexes.set(primitive, (index = { byName: new Map(), byDirectForm: new Map() }));
    return index;
  };

  /** The newest source comes last. If two sources have the same offer, the offer of the newest source counts. */
  const merged = (): readonly Offer[] => {
    if (!held.overlap()) return [...sources.values()].flat();
    return [...new Map([...sources.values()].flat().map((offer) => [offer.id, offer])).values()];
  };

  /** The offers of all sources, or those of one primitive. The lists are made when they are first requested. */
  const list = (kind: Primitive | 'all'): readonly Offer[] => {
    let offers = listings.get(kind);
    if (!offers)
      listings.set(
        kind,
        (offers = kind === 'all' ? merged() : list('all').filter(({ primitive }) => primitive === kind)),
      );
    return offers;
  };

  /**
   * Updates the index for the names of these offers alone. So a change of one source costs time for its own offers, not
   * for all offers.
   */
  const reindex = (before: readonly Offer[], after: readonly Offer[]): void => {
    const gone = new Set(before);
    const touched = Map.groupBy([...before, ...after], ({ primitive }) => primitive);
    for (const [primitive, offers] of touched) {
      const { byName, byDirectForm } = indexOf(primitive);
      for (const offer of before)
        if (offer.primitive === primitive)
          for (const form of [directForm(offer), offer.formerName]) if (form !== undefined) byDirectForm.delete(form);
      const added = Map.groupBy(
        after.filter((offer) => offer.primitive === primitive),
        ({ service }) => service,
      );
      for (const service of new Set(offers.map((offer) => offer.service))) {
        const remaining = byName.get(service)?.offers.filter((offer) => !gone.has(offer)) ?? [];
        const group = [...remaining, ...(added.get(service) ?? [])];
        if (group.length > 0) byName.set(service, { service, offers: group, sort: null, pinned: false });
        else byName.delete(service);
      }
      for (const group of added.values())
        for (const offer of group) {
          byDirectForm.set(directForm(offer), { service: offer.service, offers: [offer], sort: null, pinned: true });
          if (offer.formerName !== undefined) byDirectForm.set(offer.formerName, byName.get(offer.service)!);
        }
    }
  };

  /** The offers of a name; `departed` if its last provider left a moment ago; null if the name does not exist. */
  const find = (name: string, primitive: Primitive): Resolved | 'departed' | null => {
    const { byName, byDirectForm } = indexOf(primitive);
    const exact = byName.get(name);
    if (exact) return exact;
    const direct = EVM_PIN.test(name) ? name.slice(0, ADDRESS_LENGTH).toLowerCase() + name.slice(ADDRESS_LENGTH) : name;
    const suffixed = SUFFIXES.find(([suffix]) => direct.endsWith(suffix));
    const bare = suffixed && direct.slice(0, -suffixed[0].length);
    const resolved =
      (bare !== undefined && byName.get(bare)) ||
      byDirectForm.get(direct) ||
      (bare !== undefined && byDirectForm.get(bare));
    if (resolved) return suffixed && bare === nameOf(resolved) ? { ...resolved, sort: suffixed[1] } : resolved;
    return [name, direct, bare].some((one) => one !== undefined && lately.has(one, primitive)) ? 'departed' : null;
  };

  const catalog: Catalog = {
    resolve(name, primitive) {
      const resolved = find(name, primitive);
      if (resolved === 'departed')
        throw new GatewayError(
          'no_provider_healthy',
          `The last provider of ${printable(name)} has disconnected. If it comes back, that takes seconds: retry a few times, then take another service`,
          { retryAfterS: BACK_S },
        );
      if (resolved !== null) return resolved;
      const { code, kind, hint, param } = NOT_FOUND[primitive];
      throw new GatewayError(code, `${kind} not found: ${printable(name)}${hint}`, { param });
    },
    knows: (name, primitive) => find(name, primitive) !== null,
    offers: (primitive) => list(primitive ?? 'all'),
    replace(source, offers) {
      const ids = new Set<string>();
      for (const offer of offers) {
        if (ids.has(offer.id)) throw new Error(`source ${source} offers ${offer.id} twice`);
        ids.add(offer.id);
      }
      const before = sources.get(source) ?? [];
      const overlapped = held.overlap();
      held.replace(before, offers);
      sources.delete(source);
      if (offers.length > 0) sources.set(source, [...offers]);
      listings.clear();
      version++;
      if (!overlapped && !held.overlap()) return reindex(before, offers);
      indexes.clear();
      reindex([], list('all'));
    },
    depart(source, offers, agoMs) {
      lately.add(offers, agoMs);
      if (sources.has(source)) catalog.replace(source, []);
    },
    version: () => version,
  };
  return catalog;
}

/** Counts how many sources have each offer. `overlap`: whether some offer has several sources. */
function createHoldings(): { replace(before: readonly Offer[], after: readonly Offer[]): void; overlap(): boolean } {
  const counts = new Map<string, number>();
  let several = 0;
  return {
    replace(before, after) {
      for (const { id } of before) {
        const remaining = counts.get(id)! - 1;
        if (remaining === 1) several--;
        if (remaining === 0) counts.delete(id);
        else counts.set(id, remaining);
      }
      for (const { id } of after) {
        const count = (counts.get(id) ?? 0) + 1;
        if (count === 2) several++;
        counts.set(id, count);
      }
    },
    overlap: () => several > 0,
  };
}

/** The name that resolves to `resolved` without a suffix. */
const nameOf = (resolved: Resolved): string => (resolved.pinned ? directForm(resolved.offers[0]!) : resolved.service);

/** The names that resolve to offers, in their order. If no name does, throws the GatewayError of the first. */
export function resolveAny(
  catalog: Pick<Catalog, 'resolve'>,
  names: readonly string[],
  primitive: Primitive,
): readonly Resolved[] {
  if (names.length === 1) return [catalog.resolve(names[0]!, primitive)];
  const matches: Resolved[] = [];
  let missing: GatewayError | null = null;
  for (const name of names) {
    try {
      matches.push(catalog.resolve(name, primitive));
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error;
      missing ??= error;
    }
  }
  if (matches.length === 0 && missing !== null) throw missing;
  return matches;
}

/** Finds listed offers by id; undefined for an offer that is not listed. Indexes the catalog once for each version. */
export function createOffersById(catalog: Pick<Catalog, 'offers' | 'version'>): (id: string) => Offer | undefined {
  let index = { version: -1, byId: new Map<string, Offer>() };
  return (id) => {
    const version = catalog.version();
    if (index.version !== version)
      index = { version, byId: new Map(catalog.offers().map((offer) => [offer.id, offer])) };
    return index.byId.get(id);
  };
}

/** The routes of each kind of model, in words. */
const ENDPOINTS: readonly (readonly [Primitive, string, (name: string) => string])[] = [
  ['model', 'a chat model', () => 'ask it at /chat/completions'],
  ['image', 'an image model', (name) => `ask it at /images/generations, or as image/${name} in a chat`],
  ['video', 'a video model', (name) => `ask it at /videos, or as video/${name} in a chat`],
];

/**
 * Text for an error: the route for a name that belongs to another kind of model than `primitive`; empty if no model has
 * the name.
 */
export function otherEndpoint(name: string, requested: Primitive, catalog: Pick<Catalog, 'knows'>): string {
  const endpoint = ENDPOINTS.find(([primitive]) => primitive !== requested && catalog.knows(name, primitive));
  return endpoint === undefined ? '' : `It is ${endpoint[1]}: ${endpoint[2](name)}`;
}

/** The maximum number of names to compare. It bounds the cost of a client that sends many misspelt names. */
export const COMPARED_MAX = 1_000;
/** The part of a name that is compared. With `COMPARED_MAX` it bounds the work to a turn of about a millisecond. */
const COMPARED_CHARACTERS = 128;
const SHOWN = 3;
const LEAST = 0.3;
/** The lowest share of the best score. */
const LEAST_SHARE = 0.8;

/**
 * The names that are most similar to an unknown name, best first; those that are as similar, in the order of `names`.
 * Similarity is the share of common character pairs (Dice coefficient).
 */
export function nearestNames(name: string, names: Iterable<string>): readonly string[] {
  // By pair, the last name that has it; the wanted one is 1. Sets of strings took sixteen times as long.
  const nameMarks = new Uint16Array(PAIRS);
  const seen = new Uint16Array(PAIRS);
  const size = markPairs(name, nameMarks, 1, nameMarks).marked;
  const scored: { readonly name: string; readonly score: number }[] = [];
  let compared = 0;
  for (const name of names) {
    if (++compared > COMPARED_MAX) break;
    const { marked, shared } = markPairs(name, seen, compared, nameMarks);
    const score = (2 * shared) / Math.max(1, size + marked);
    if (score >= LEAST) scored.push({ name, score });
  }
  scored.sort((a, b) => b.score - a.score);
  return scored
    .slice(0, SHOWN)
    .filter(({ score }) => score >= scored[0]!.score * LEAST_SHARE)
    .map(({ name }) => name);
}

export function nearestHint(name: string, names: Iterable<string>): string {
  const nearest = nearestNames(name, names);
  return nearest.length === 0 ? '' : `The nearest: ${nearest.join(', ')}`;
}

/** Pairs of Latin-1 characters are exact; pairs of others may share a place, which makes names only seem nearer. */
const PAIRS = 65_536;

/** Writes `mark` at the different pairs of a text. `shared`: those that `nameMarks` has too. */
function markPairs(text: string, marks: Uint16Array, mark: number, nameMarks: Uint16Array) {
  const lower = text.slice(0, COMPARED_CHARACTERS).toLowerCase();
  let marked = 0;
  let shared = 0;
  for (let i = 1; i < lower.length; i++) {
    const pair = ((lower.charCodeAt(i - 1) << 8) ^ lower.charCodeAt(i)) & (PAIRS - 1);
    if (marks[pair] === mark) continue;
    marks[pair] = mark;
    marked += 1;
    if (nameMarks[pair] !== 0) shared += 1;
  }
  return { marked, shared };
}
