import { loadStatement, type Database } from '#store';
import { ratesFromJson, ratesToJson, type Price, type Rates } from './price.ts';

/** A price version with whose it is and what for. `id` is priceId(provider, service, rates). */
export interface PriceVersion extends Price {
  readonly provider: string;
  readonly service: string;
}

export interface PriceBook {
  /** Keeps versions for ever; those already known cost nothing. A lock may only carry prices that are remembered. */
  remember(versions: readonly PriceVersion[]): Promise<void>;
  /** Whether a version is known here to be kept. One that is not may have been kept by another gateway. */
  has(id: string): boolean;
  find(id: string): Promise<(PriceVersion & { readonly createdAt: number }) | null>;
}

const PUT_PRICE = loadStatement(import.meta.url, './sql/put-price.sql');
const FIND_PRICE = loadStatement(import.meta.url, './sql/find-price.sql');

/**
 * Versions of one transaction: a provider with thousands of prices does not keep the ledger waiting for all of them.
 */
const GROUP_MAX = 200;
/** Versions that are known not to need writing. */
const KNOWN_MAX = 100_000;

/** Every price that calls were ever made with: immutable, so that a charge can be recomputed years later. */
export function createPriceBook(database: Database, now: () => number = Date.now): PriceBook {
  const known = new Set<string>();
  return {
    has: (id) => known.has(id),
    async remember(versions) {
      const fresh = versions.filter(({ id }) => !known.has(id)).sort((a, b) => (a.id < b.id ? -1 : 1));
      for (let from = 0; from < fresh.length; from += GROUP_MAX) {
        const group = fresh.slice(from, from + GROUP_MAX);
        await database.batch(
          group.map(({ id, provider, service, rates }) => ({
            statement: PUT_PRICE,
            params: [id, provider, service, ratesToText(rates), now()],
          })),
        );
        for (const { id } of group) {
          if (known.size >= KNOWN_MAX) known.delete(known.values().next().value!);
          known.add(id);
        }
      }
    },
    async find(id) {
      const row = (await database.query(FIND_PRICE, [id]))[0];
      if (!row) return null;
      const { provider, service, rates, created_at } = row;
      return {
        id,
        provider: provider as string,
        service: service as string,
        rates: ratesFromText(rates as string),
        createdAt: Number(created_at),
      };
    },
  };
}

function ratesToText(rates: Rates): string {
  return JSON.stringify(ratesToJson(rates));
}

export function ratesFromText(text: string): Rates {
  return ratesFromJson(JSON.parse(text) as Record<string, string>);
}
