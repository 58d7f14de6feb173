import { type ErrorCode, GatewayError, printable } from '#wire';
import { type Primitive, SORT_SUFFIXES } from '#config';
import type { Offer } from '../call.ts';
import { createLatelyServed } from './lately-served.ts';
import { directForm } from './offers.ts';

/** A name as a consumer wrote it, resolved to offers. */
export interface Resolved {
  /** The service's own name, without pin and suffix. */
  readonly service: string;
  readonly offers: readonly Offer[];
  /** From the suffix: `:floor` is price, `:nitro` is throughput. */
  readonly sort: 'price' | 'throughput' | null;
  /** True for the direct form `<provider_pubkey>:<name>`. */
  readonly pinned: boolean;
}

export interface Catalog {
  /**
   * Throws GatewayError `invalid_model` (`Model not found: <name>`) or `not_found`, and `no_provider_healthy` for a
   * name whose last provider went away a moment ago.
   */
  resolve(name: string, primitive: Primitive): Resolved;
  /** Whether `resolve` finds it, or would say that its provider went away a moment ago. */
  knows(name: string, primitive: Primitive): boolean;
  offers(primitive?: Primitive): readonly Offer[];
  /** Replaces all offers of one source (the config file; later a provider's tunnel) in one step. */
  replace(source: string, offers: readonly Offer[]): void;
  /**
   * Takes out a source whose provider went away `agoMs` ago. `offers`: what it had, also where it was not listed.
   * Their names stay known for a while.
   */
  depart(source: string, offers: readonly Offer[], agoMs: number): void;
  /** Grows with every replacement, so that what was derived from the offers can be kept until then. */
  version(): number;
}

/** The offers of one primitive by name. The results are made once, so that resolving allocates nothing. */
interface Index {
  readonly byName: Map<string, Resolved>;
  readonly byDirectForm: Map<string, Resolved>;
}

const SUFFIXES = Object.entries(SORT_SUFFIXES);
/** A direct form that begins with an EVM address, whose hex is the same in either case. Ids have it in lower case. */
const EVM_PIN = /^0x[0-9a-f]{40}:/i;
const ADDRESS_LENGTH = 42;
/** Seconds until a provider that moves is usually back. */
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
 * All offers of all sources, found by name. Names are case-sensitive and may hold colons, so they are looked up in
 * this order: the exact name, the name with a `:floor` or `:nitro` suffix, the direct form `<provider id>:<name>`,
 * the direct form with a suffix.
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

  /** The newest source comes last: its offer stands where two sources have the same one. */
  const merged = (): readonly Offer[] => {
    if (!held.overlap()) return [...sources.values()].flat();
    return [...new Map([...sources.values()].flat().map((offer) => [offer.id, offer])).values()];
  };

  /** The offers of all sources, or of one primitive, made when they are asked for. */
  const list = (of: Primitive | 'all'): readonly Offer[] => {
    let offers = listings.get(of);
    if (!offers)
      listings.set(of, (offers = of === 'all' ? merged() : list('all').filter(({ primitive }) => primitive === of)));
    return offers;
  };

  /**
   * Changes what the names of these offers lead to and leaves the others: a source that changes costs its own
   * offers, not everybody's.
   */
  const reindex = (before: readonly Offer[], after: readonly Offer[]): void => {
    const gone = new Set(before);
    const touched = Map.groupBy([...before, ...after], ({ primitive }) => primitive);
    for (const [primitive, offers] of touched) {
      const { byName, byDirectForm } = indexOf(primitive);
      for (const offer of before) if (offer.primitive === primitive) byDirectForm.delete(directForm(offer));
      const added = Map.groupBy(
        after.filter((offer) => offer.primitive === primitive),
        ({ service }) => service,
      );
      for (const service of new Set(offers.map((offer) => offer.service))) {
        const kept = byName.get(service)?.offers.filter((offer) => !gone.has(offer)) ?? [];
        const group = [...kept, ...(added.get(service) ?? [])];
        if (group.length > 0) byName.set(service, { service, offers: group, sort: null, pinned: false });
        else byName.delete(service);
      }
      for (const group of added.values())
        for (const offer of group)
          byDirectForm.set(directForm(offer), { service: offer.service, offers: [offer], sort: null, pinned: true });
    }
  };

  const catalog: Catalog = {
    resolve(name, primitive) {
      const { byName, byDirectForm } = indexOf(primitive);
      const exact = byName.get(name);
      if (exact) return exact;
      const direct = EVM_PIN.test(name)
        ? name.slice(0, ADDRESS_LENGTH).toLowerCase() + name.slice(ADDRESS_LENGTH)
        : name;
      const suffixed = SUFFIXES.find(([suffix]) => direct.endsWith(suffix));
      const bare = suffixed && direct.slice(0, -suffixed[0].length);
      const found =
        (bare !== undefined && byName.get(bare)) ||
        byDirectForm.get(direct) ||
        (bare !== undefined && byDirectForm.get(bare));
      if (found) return suffixed && bare === nameOf(found) ? { ...found, sort: suffixed[1] } : found;
      if ([name, direct, bare].some((one) => one !== undefined && lately.has(one, primitive)))
        throw new GatewayError(
          'no_provider_healthy',
          `No provider of ${printable(name)} is connected at the moment; one was, a moment ago`,
          { retryAfterS: BACK_S },
        );
      const { code, kind, hint, param } = NOT_FOUND[primitive];
      throw new GatewayError(code, `${kind} not found: ${printable(name)}${hint}`, { param });
    },
    knows(name, primitive) {
      try {
        catalog.resolve(name, primitive);
        return true;
      } catch (error) {
        if (error instanceof GatewayError) return error.code === 'no_provider_healthy';
        throw error;
      }
    },
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

/** How many sources have each offer. */
function createHoldings(): { replace(before: readonly Offer[], after: readonly Offer[]): void; overlap(): boolean } {
  const counts = new Map<string, number>();
  let several = 0;
  return {
    replace(before, after) {
      for (const { id } of before) {
        const left = counts.get(id)! - 1;
        if (left === 1) several--;
        if (left === 0) counts.delete(id);
        else counts.set(id, left);
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

/** The name that leads to a result without a suffix. */
const nameOf = (found: Resolved): string => (found.pinned ? directForm(found.offers[0]!) : found.service);
