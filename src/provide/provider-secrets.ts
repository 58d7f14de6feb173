import type { ProviderConfig } from './provider-file.ts';

/** Every value of a provider's file that a log must not show. What a tool's environment holds is taken as secret. */
export function secretsOf({ router, services }: ProviderConfig): readonly (string | null)[] {
  return [
    router.apiKey,
    router.wallet?.privateKey ?? null,
    ...services.flatMap(({ target }) => (target.kind === 'http' ? [target.apiKey] : Object.values(target.env))),
  ];
}
