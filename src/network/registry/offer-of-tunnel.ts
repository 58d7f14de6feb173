import { type Offer, toOffer } from '#gateway';
import { atPrices } from './past-prices.ts';
import type { RegisteredService } from './registry.ts';
import { servicePath } from '../tunnel/wire.ts';

/** The offer for a service that a proxy registered. It is reached through the proxy's tunnel. */
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
