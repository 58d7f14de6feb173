export { createLog, type Log } from './log.ts';
export { providerChecks, runChecks } from './probe/checks.ts';
export { loadProvider, type ProviderConfig } from './provider-file.ts';
export { secretsOf } from './provider-secrets.ts';
export { createProxy } from './proxy.ts';
