import { loadStatements, type Database } from '#store';
import type { PriceVersion } from '#billing';
import { ownTurn } from '#wire';
import { type Offer, type Catalog, LATELY_MS, toOffer } from '#catalog';
import { type RegisteredService, registeredOf, atPrices } from './registered-services.ts';
import type { ReservedNames } from './service-names.ts';
import { servicePath } from '../tunnel-wire.ts';

/**
 * Keeps the offers of providers with a tunnel in the catalogue while the provider is reachable, and for the grace time
 * after.
 */
export interface ProviderListing {
  /** `awayMs`: how long the provider has been unreachable. Used if the provider is not listed yet. */
  set(
    provider: string,
    state: { readonly reachable: boolean; readonly revision: number; readonly awayMs: number },
  ): void;
  /** Lists a provider's current registration at once. */
  put(provider: string, revision: number, services: readonly RegisteredService[]): void;
  /**
   * Reads the registrations that should be listed but were made at another gateway or before the start. The next call
   * repeats a failed read.
   */
  load(): Promise<void>;
  /** Removes the offers of a banned provider at once. */
  drop(provider: string): void;
  relist(): void;
  close(): void;
}

interface ListingOptions {
  readonly database: Pick<Database, 'batch'>;
  readonly catalog: Pick<Catalog, 'replace' | 'depart'>;
  readonly graceMs: number;
  readonly isBanned: (provider: string) => boolean;
  /** Services with such a name are not listed: they were registered before the operator took the name. */
  readonly reservedNames?: Pick<ReservedNames, 'ofService'> | undefined;
  readonly onGone: (provider: string) => void;
}

interface Listed {
  /** Revision that should be listed. */
  target: number;
  /** Revision that is listed. */
  loaded: number;
  offers: readonly Offer[];
  /** Runs while the provider is away. */
  grace: NodeJS.Timeout | null;
  /**
   * Set for a provider that has been away longer than the grace time, whose offers are only remembered as departed.
   * Milliseconds that it had been away when this was noticed.
   */
  goneMs: number | null;
}

const SQL = loadStatements(import.meta.url, './sql/registrations.sql', ['findDocument']);
const LOAD_MAX = 100;

export function createListing(options: ListingOptions): ProviderListing {
  const { database, catalog, graceMs, isBanned, reservedNames, onGone } = options;
  const listed = new Map<string, Listed>();
  const toLoad = new Set<string>();
  let loading: Promise<void> | null = null;

  const show = (provider: string, offers: readonly Offer[]) =>
    catalog.replace(
      sourceOf(provider),
      offers.filter(({ service }) => (reservedNames?.ofService(service) ?? null) === null),
    );

  const end = (provider: string) => {
    const entry = listed.get(provider);
    listed.delete(provider);
    toLoad.delete(provider);
    if (entry && entry.offers.length > 0) catalog.depart(sourceOf(provider), entry.offers, graceMs);
    onGone(provider);
  };

  /** Ends the grace time of a provider that is away. */
  const lapse = (provider: string) => {
    const entry = listed.get(provider)!;
    // Its registration is still being read. Its names will be remembered when it arrives.
    if (entry.loaded < entry.target && entry.offers.length === 0) entry.goneMs = graceMs;
    else end(provider);
  };

  const loadAll = async () => {
    while (toLoad.size > 0) {
      const group = [...toLoad].slice(0, LOAD_MAX);
      // Removed before the read, so that a registration during the read is read again.
      for (const provider of group) toLoad.delete(provider);
      const results = await database
        .batch(group.map((provider) => ({ statement: SQL.findDocument, params: [provider] })))
        .catch((error: unknown) => {
          for (const provider of group) if (listed.has(provider)) toLoad.add(provider);
          throw error;
        });
      for (const [row] of results) {
        if (!row) continue;
        await ownTurn();
        const services = registeredOf(row);
        await ownTurn();
        listing.put(row['provider'] as string, Number(row['revision']), services);
      }
    }
  };

  const listing: ProviderListing = {
    set(provider, { reachable, revision, awayMs }) {
      if (isBanned(provider)) return onGone(provider);
      let entry = listed.get(provider);
      if (!entry) {
        const gone = !reachable && awayMs >= graceMs;
        if (gone && (awayMs >= LATELY_MS || revision === 0)) return onGone(provider);
        listed.set(provider, (entry = { target: 0, loaded: 0, offers: [], grace: null, goneMs: gone ? awayMs : null }));
      }
      if (reachable) {
        if (entry.grace) clearTimeout(entry.grace);
        entry.grace = null;
        entry.goneMs = null;
      } else if (entry.goneMs === null) {
        entry.grace ??= setTimeout(lapse, graceMs - Math.max(0, awayMs), provider).unref();
      }
      if (revision > entry.target) entry.target = revision;
      if (entry.loaded < entry.target) toLoad.add(provider);
    },
    put(provider, revision, services) {
      const entry = listed.get(provider);
      if (!entry || revision <= entry.loaded) return;
      entry.loaded = revision;
      if (entry.loaded >= entry.target) toLoad.delete(provider);
      if (entry.goneMs !== null) {
        catalog.depart(sourceOf(provider), offersOf(provider, services), entry.goneMs);
        return end(provider);
      }
      const changes = services.length > 0 || entry.offers.length > 0;
      entry.offers = offersOf(provider, services);
      if (changes) show(provider, entry.offers);
    },
    drop(provider) {
      const entry = listed.get(provider);
      if (entry?.grace) clearTimeout(entry.grace);
      listed.delete(provider);
      toLoad.delete(provider);
      // Without `depart`, so that its names are unknown at once: nobody should wait for it to come back.
      if (entry && entry.offers.length > 0) catalog.replace(sourceOf(provider), []);
      onGone(provider);
    },
    relist() {
      for (const [provider, { offers }] of listed) if (offers.length > 0) show(provider, offers);
    },
    load: () => (loading ??= loadAll().finally(() => (loading = null))),
    close() {
      for (const { grace } of listed.values()) if (grace) clearTimeout(grace);
      listed.clear();
      toLoad.clear();
    },
  };
  return listing;
}

function offersOf(provider: string, services: readonly RegisteredService[]): readonly Offer[] {
  return services.map((registered) => offerOfTunnel(registered, provider));
}

export function pricesOf(offers: readonly Offer[]): readonly PriceVersion[] {
  return offers.flatMap(({ price, variants, provider, service }) =>
    [price, ...Object.values(variants)].map((each) => ({ ...each, provider: provider.id, service })),
  );
}

const sourceOf = (provider: string): string => `tunnel:${provider}`;

/** The offer for a service that a proxy registered. It is reached through the proxy's tunnel. */
export function offerOfTunnel({ service, createdAt, raised }: RegisteredService, provider: string): Offer {
  const where = {
    provider: { id: provider, name: service.providerName },
    endpoint: { kind: 'tunnel', provider, basePath: servicePath(service.primitive, service.name) },
    createdAt,
  } as const;
  const offer = toOffer(service, where);
  if (!raised) return offer;
  const { price, variants, priceCap, agent } = toOffer(atPrices(service, raised.was), where);
  return { ...offer, raised: { until: raised.until, was: { price, variants, priceCap, agent } } };
}
