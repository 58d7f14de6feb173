export { createLog, type Log } from './log.ts';
export { loadProvider, type ProviderConfig, secretsOf } from './provider-file.ts';
export { createProxy } from './proxy.ts';
export { createReload, type ReloadReport } from './reload.ts';

/** Loads the checks for `--validate`. They are loaded only then, so a running proxy doesn't load them. */
export const loadChecks = () => import('./probe/checks.ts');

export type { OwnPages } from './probe/own-pages.ts';
/** Loads what reads the router's pages of this provider. A running proxy doesn't need it. */
export const loadOwnPages = () => import('./probe/own-pages.ts');
