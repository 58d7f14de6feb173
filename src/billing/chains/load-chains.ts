import type { Database } from '#store';
import type { ChainBook } from './chain-rows.ts';

/**
 * Loads the code for money over chains. It is loaded only if a chain is set up for payments, because its libraries need
 * much time and memory.
 */
export const loadChains = () => import('./chains.ts');

/** The books of all chains that were ever set up, by their networks. */
export async function listBooks(database: Database): Promise<readonly ChainBook[]> {
  const { createChainRows } = await import('./chain-rows.ts');
  return createChainRows(database, { now: Date.now }).list();
}
