import { loadStatement, type Database } from '#store';
import type { Offer } from '../call.ts';

const PUT = loadStatement(import.meta.url, './sql/put-offer-seen.sql');

/**
 * Returns the offers of the gateway's configuration file with `createdAt` set to the time when this database first saw
 * them. Rejects with the database's error.
 */
export async function withFirstSeen(
  database: Pick<Database, 'batch'>,
  offers: readonly Offer[],
): Promise<readonly Offer[]> {
  if (offers.length === 0) return offers;
  // All gateways write in the same order. Otherwise two gateways that start at once could deadlock on each other's
  // rows.
  const ordered = offers.toSorted((a, b) => (a.id < b.id ? -1 : 1));
  const rows = await database.batch(ordered.map(({ id, createdAt }) => ({ statement: PUT, params: [id, createdAt] })));
  const seen = new Map(rows.flat().map((row) => [row['offer'] as string, Number(row['first_seen'])]));
  return offers.map((offer) => ({ ...offer, createdAt: seen.get(offer.id)! }));
}
