import { loadStatements, type Database } from '#store';
import { costLines, type CostLine, type Price, type Rates, type Usage } from './price.ts';
import { ratesFromJson, ratesToJson } from './price-text.ts';

/** A price version with its provider and its service. `id` is priceId(provider, service, rates). */
export interface PriceVersion extends Price {
  readonly provider: string;
  readonly service: string;
}

export interface PriceBook {
  /** Stores versions for ever. Versions that are already known cost nothing. A lock may only use stored prices. */
  remember(versions: readonly PriceVersion[]): Promise<void>;
  /** True if this process knows that the version is stored. Otherwise another gateway may still have stored it. */
  has(id: string): boolean;
  find(id: string): Promise<(PriceVersion & { readonly createdAt: number }) | null>;
  /** How the cost of `usage` at a price follows; empty for a price that is not stored. */
  costLines(id: string, usage: Usage): Promise<readonly CostLine[]>;
}

const SQL = loadStatements(import.meta.url, '../sql/prices.sql', ['putPrice', 'findPrice']);

/** Versions per transaction. The bound keeps a provider with thousands of prices from delaying the ledger. */
const GROUP_MAX = 200;
const KNOWN_MAX = 100_000;

/**
 * Stores every price that calls were ever locked at, and those of the operator's file. Prices are immutable, so a
 * charge can be recomputed years later.
 */
export function createPriceBook(database: Database, now: () => number = Date.now): PriceBook {
  const known = new Set<string>();
  const find: PriceBook['find'] = async (id) => {
    const row = (await database.query(SQL.findPrice, [id]))[0];
    if (!row) return null;
    const { provider, service, rates, created_at } = row;
    return {
      id,
      provider: provider as string,
      service: service as string,
      rates: ratesFromText(rates as string),
      createdAt: Number(created_at),
    };
  };
  return {
    find,
    async costLines(id, usage) {
      const price = await find(id);
      return price === null ? [] : costLines(price.rates, usage);
    },
    has: (id) => known.has(id),
    async remember(versions) {
      const fresh = versions.filter(({ id }) => !known.has(id)).sort((a, b) => (a.id < b.id ? -1 : 1));
      for (let from = 0; from < fresh.length; from += GROUP_MAX) {
        const group = fresh.slice(from, from + GROUP_MAX);
        await database.batch(
          group.map(({ id, provider, service, rates }) => ({
            statement: SQL.putPrice,
            params: [id, provider, service, ratesToText(rates), now()],
          })),
        );
        for (const { id } of group) {
          if (known.size >= KNOWN_MAX) known.delete(known.values().next().value!);
          known.add(id);
        }
      }
    },
  };
}

function ratesToText(rates: Rates): string {
  return JSON.stringify(ratesToJson(rates));
}

export function ratesFromText(text: string): Rates {
  return ratesFromJson(JSON.parse(text) as Record<string, string>);
}
