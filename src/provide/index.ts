export { createLog, type Log } from './log.ts';
export { loadProvider, type ProviderConfig } from './provider-file.ts';
export { secretsOf } from './provider-secrets.ts';
export { createProxy } from './proxy.ts';

/** Checks of what a file names, for `--validate`: a proxy that runs does not load them. */
export const loadChecks = () => import('./probe/checks.ts');
