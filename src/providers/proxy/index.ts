export { createLog, type Log } from './log.ts';
export { loadProvider, type ProviderConfig, secretsOf } from './provider-file.ts';
export { createProxy } from './proxy.ts';
export { createReload, type ReloadReport } from './reload.ts';

/** Loads the checks for `--validate`. They are loaded only then, so a running proxy doesn't load them. */
export const loadChecks = () => import('./probe/checks.ts');

/** Loads what asks the router for this provider's own failures. */
export const loadOwnFailures = () => import('./probe/router.ts');
