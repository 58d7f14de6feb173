/**
 * The code for money over chains. It is loaded where chains are set up for payments, and nowhere else: with its
 * libraries it takes long and much memory.
 */
export const loadChains = () => import('./chains.ts');
