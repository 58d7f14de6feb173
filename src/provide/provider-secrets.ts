import type { ProviderConfig } from './provider-file.ts';

/**
 * Returns every value of a provider's file that a log must not show. All environment variables of tools count as
 * secrets.
 */
export function secretsOf({ router, services }: ProviderConfig): readonly (string | null)[] {
  return [
    router.apiKey,
    router.wallet?.privateKey ?? null,
    ...services.flatMap(({ target }) => (target.kind === 'http' ? [target.apiKey] : Object.values(target.env))),
  ];
}
