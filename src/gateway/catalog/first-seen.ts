import { loadStatement, type Database } from '#store';
import type { Offer } from '../call.ts';

const PUT = loadStatement(import.meta.url, './sql/put-offer-seen.sql');

/**
 * Offers of the gateway's file with `createdAt` of when they were first in one, in this database. Rejects with the
 * database's error.
 */
export async function withFirstSeen(
  database: Pick<Database, 'batch'>,
  offers: readonly Offer[],
): Promise<readonly Offer[]> {
  if (offers.length === 0) return offers;
  // In the same order on every gateway: two that start at once would wait for each other's rows otherwise.
  const ordered = offers.toSorted((a, b) => (a.id < b.id ? -1 : 1));
  const rows = await database.batch(ordered.map(({ id, createdAt }) => ({ statement: PUT, params: [id, createdAt] })));
  const seen = new Map(rows.flat().map((row) => [row['offer'] as string, Number(row['first_seen'])]));
  return offers.map((offer) => ({ ...offer, createdAt: seen.get(offer.id)! }));
}
