import type { Offer, Primitive } from '../call.ts';
import { GatewayError } from '../errors.ts';
import { printable, SORT_SUFFIXES } from './names.ts';

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
  /** Throws GatewayError `invalid_model` (`Model not found: <name>`) or `not_found`. */
  resolve(name: string, primitive: Primitive): Resolved;
  offers(primitive?: Primitive): readonly Offer[];
  /** Replaces all offers of one source (the config file; later a provider's tunnel) in one step. */
  replace(source: string, offers: readonly Offer[]): void;
  /** Grows with every replacement, so that what was derived from the offers can be kept until then. */
  version(): number;
}

/** What one primitive's names lead to. The results are made once, so that resolving allocates nothing. */
interface Index {
  readonly offers: readonly Offer[];
  readonly byName: ReadonlyMap<string, Resolved>;
  readonly byDirectForm: ReadonlyMap<string, Resolved>;
}

const EMPTY: Index = { offers: [], byName: new Map(), byDirectForm: new Map() };
const SUFFIXES = Object.entries(SORT_SUFFIXES);

const NOT_FOUND = {
  model: ['invalid_model', 'Model'],
  image: ['invalid_model', 'Model'],
  video: ['invalid_model', 'Model'],
  tool: ['not_found', 'Tool'],
  agent: ['not_found', 'Agent'],
} as const satisfies Record<Primitive, readonly [string, string]>;

/**
 * All offers of all sources, found by name. Names are case-sensitive and may hold colons, so they are looked up in this order:
 * the exact name, the name with a `:floor` or `:nitro` suffix, the direct form `<provider id>:<name>`, the direct form with a suffix.
 */
export function createCatalog(): Catalog {
  const sources = new Map<string, readonly Offer[]>();
  let indexes = new Map<Primitive, Index>();
  let all: readonly Offer[] = [];
  let version = 0;

  return {
    resolve(name, primitive) {
      const { byName, byDirectForm } = indexes.get(primitive) ?? EMPTY;
      const exact = byName.get(name);
      if (exact) return exact;
      const suffixed = SUFFIXES.find(([suffix]) => name.endsWith(suffix));
      const bare = suffixed && name.slice(0, -suffixed[0].length);
      const found = (bare !== undefined && byName.get(bare)) || byDirectForm.get(name) || (bare !== undefined && byDirectForm.get(bare));
      if (found) return suffixed && bare === nameOf(found) ? { ...found, sort: suffixed[1] } : found;
      const [code, kind] = NOT_FOUND[primitive];
      throw new GatewayError(code, `${kind} not found: ${printable(name)}`, { param: code === 'invalid_model' ? 'model' : undefined });
    },
    offers: (primitive) => (primitive === undefined ? all : (indexes.get(primitive) ?? EMPTY).offers),
    replace(source, offers) {
      const ids = new Set<string>();
      for (const offer of offers) {
        const id = `${offer.primitive} ${offer.id}`;
        if (ids.has(id)) throw new Error(`source ${source} offers ${id} twice`);
        ids.add(id);
      }
      // The newest source comes last: its offer stands where two sources have the same one.
      sources.delete(source);
      if (offers.length > 0) sources.set(source, [...offers]);
      const merged = new Map<string, Offer>();
      for (const offer of [...sources.values()].flat()) merged.set(`${offer.primitive} ${offer.id}`, offer);
      all = [...merged.values()];
      indexes = new Map([...Map.groupBy(all, (offer) => offer.primitive)].map(([primitive, group]) => [primitive, index(group)]));
      version++;
    },
    version: () => version,
  };
}

/** The name that leads to a result without a suffix. */
const nameOf = (found: Resolved): string => (found.pinned ? found.offers[0]!.id : found.service);

function index(offers: readonly Offer[]): Index {
  const result = (service: string, group: readonly Offer[], pinned: boolean): Resolved => ({ service, offers: group, sort: null, pinned });
  return {
    offers,
    byName: new Map([...Map.groupBy(offers, (offer) => offer.service)].map(([service, group]) => [service, result(service, group, false)])),
    byDirectForm: new Map(offers.map((offer) => [offer.id, result(offer.service, [offer], true)])),
  };
}
