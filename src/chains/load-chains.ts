/**
 * Loads the code for money over chains. It is loaded only if a chain is set up for payments, because its libraries need
 * much time and memory.
 */
export const loadChains = () => import('./chains.ts');
