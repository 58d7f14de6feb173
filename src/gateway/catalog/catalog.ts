import type { Offer, Primitive } from '../call.ts';
import { GatewayError } from '../errors.ts';
import { printable, SORT_SUFFIXES } from './names.ts';
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
/** A direct form that begins with an EVM address, whose hex is the same in either case. Ids have it in lower case. */
const EVM_PIN = /^0x[0-9a-f]{40}:/i;
const ADDRESS_LENGTH = 42;

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
  let made: { readonly all: readonly Offer[]; readonly indexes: ReadonlyMap<Primitive, Index> } | null = null;
  let version = 0;

  /** Made when it is asked for, so that the offers of a thousand providers that come at once are indexed once. */
  const current = () => {
    if (made) return made;
    const merged = new Map<string, Offer>();
    for (const offers of sources.values()) for (const offer of offers) merged.set(offer.id, offer);
    const all = [...merged.values()];
    made = { all, indexes: new Map([...Map.groupBy(all, (offer) => offer.primitive)].map(([primitive, group]) => [primitive, index(group)])) };
    return made;
  };

  return {
    resolve(name, primitive) {
      const { byName, byDirectForm } = current().indexes.get(primitive) ?? EMPTY;
      const exact = byName.get(name);
      if (exact) return exact;
      const direct = EVM_PIN.test(name) ? name.slice(0, ADDRESS_LENGTH).toLowerCase() + name.slice(ADDRESS_LENGTH) : name;
      const suffixed = SUFFIXES.find(([suffix]) => direct.endsWith(suffix));
      const bare = suffixed && direct.slice(0, -suffixed[0].length);
      const found = (bare !== undefined && byName.get(bare)) || byDirectForm.get(direct) || (bare !== undefined && byDirectForm.get(bare));
      if (found) return suffixed && bare === nameOf(found) ? { ...found, sort: suffixed[1] } : found;
      const [code, kind] = NOT_FOUND[primitive];
      throw new GatewayError(code, `${kind} not found: ${printable(name)}`, { param: code === 'invalid_model' ? 'model' : undefined });
    },
    offers: (primitive) => (primitive === undefined ? current().all : (current().indexes.get(primitive) ?? EMPTY).offers),
    replace(source, offers) {
      const ids = new Set<string>();
      for (const offer of offers) {
        if (ids.has(offer.id)) throw new Error(`source ${source} offers ${offer.id} twice`);
        ids.add(offer.id);
      }
      // The newest source comes last: its offer stands where two sources have the same one.
      sources.delete(source);
      if (offers.length > 0) sources.set(source, [...offers]);
      made = null;
      version++;
    },
    version: () => version,
  };
}

/** The name that leads to a result without a suffix. */
const nameOf = (found: Resolved): string => (found.pinned ? directForm(found.offers[0]!) : found.service);

function index(offers: readonly Offer[]): Index {
  const result = (service: string, group: readonly Offer[], pinned: boolean): Resolved => ({ service, offers: group, sort: null, pinned });
  return {
    offers,
    byName: new Map([...Map.groupBy(offers, (offer) => offer.service)].map(([service, group]) => [service, result(service, group, false)])),
    byDirectForm: new Map(offers.map((offer) => [directForm(offer), result(offer.service, [offer], true)])),
  };
}
