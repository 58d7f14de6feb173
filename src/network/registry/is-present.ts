import type { Offer } from '#gateway';
import type { Registry } from './registry.ts';

/** Whether an offer can be called now: it is reached directly, or its provider is connected somewhere. */
export const isPresent = (registry: Pick<Registry, 'locate'>, { endpoint }: Pick<Offer, 'endpoint'>): boolean =>
  endpoint.kind === 'direct' || registry.locate(endpoint.provider) !== null;
