import { type Offer, toOffer } from '#gateway';
import { atPrices } from './past-prices.ts';
import type { RegisteredService } from './registry.ts';
import { servicePath } from '../tunnel/wire.ts';

/** A service that a provider's proxy registered, as an offer that is reached through its tunnel. */
export function offerOfTunnel({ service, createdAt, raised }: RegisteredService, provider: string): Offer {
  const where = {
    provider: { id: provider, name: service.providerName },
    endpoint: { kind: 'tunnel', provider, basePath: servicePath(service.primitive, service.name) },
    createdAt,
  } as const;
  const offer = toOffer(service, where);
  if (!raised) return offer;
  const { price, variants, priceCap, agent } = toOffer(atPrices(service, raised.was), where);
  return { ...offer, raised: { until: raised.until, was: { price, variants, priceCap, agent } } };
}
