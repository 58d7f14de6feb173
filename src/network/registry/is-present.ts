import type { Offer } from '#gateway';
import type { Registry } from './registry.ts';

/**
 * Whether an offer can be called now. This holds if its endpoint is direct, or if its provider is connected to any
 * gateway.
 */
export const isPresent = (registry: Pick<Registry, 'locate'>, { endpoint }: Pick<Offer, 'endpoint'>): boolean =>
  endpoint.kind === 'direct' || registry.locate(endpoint.provider) !== null;
