import { offerId, priceId, type Price, type Rates } from '#billing';
import { keyHeaders, MESSAGES_PATH, type Service, type ServiceConfig } from '#config';
import type { Endpoint, Offer, Provider } from '../call.ts';

interface OffersFromConfigOptions {
  /** The public key of a provider of the configuration file. */
  readonly providerId: (providerName: string) => string;
  /** Epoch milliseconds. */
  readonly createdAt: number;
}

/** The service blocks of the gateway's own configuration file as offers, one for each block, reached directly. */
export function offersFromConfig(
  services: readonly ServiceConfig[],
  { providerId, createdAt }: OffersFromConfigOptions,
): readonly Offer[] {
  return services.map(({ service, target }) => {
    if (target.kind !== 'http') throw new Error(`${service.name} is a command, which only a provider's proxy can run`);
    return toOffer(service, {
      provider: { id: providerId(service.providerName), name: service.providerName },
      endpoint: {
        kind: 'direct',
        baseUrl: target.url,
        headers: keyHeaders(target.apiKey, ''),
        ...(service.primitive === 'model' && service.model.wires?.includes('messages')
          ? { headersAt: { [MESSAGES_PATH]: keyHeaders(target.apiKey, MESSAGES_PATH) } }
          : {}),
      },
      createdAt,
    });
  });
}

/** The direct form of an offer's name. Consumers use it to pin the provider. */
export function directForm(offer: Pick<Offer, 'provider' | 'service'>): string {
  return `${offer.provider.id}:${offer.service}`;
}

/** The direct form of an offer, from its id: the id without the primitive. */
export const pinned = (id: string): string => id.slice(id.indexOf('/') + 1);

/** The public key of an offer's provider, from the offer's id. */
export const providerOf = (id: string): string => pinned(id).split(':', 1)[0]!;

/** The offer of a provider's service that is served at `where`. */
export function toOffer(
  service: Service,
  where: { readonly provider: Provider; readonly endpoint: Endpoint; readonly createdAt: number },
): Offer {
  const price = (rates: Rates): Price => ({ id: priceId(where.provider.id, service.name, rates), rates });
  return {
    ...where,
    id: offerId({ primitive: service.primitive, provider: where.provider.id, service: service.name }),
    service: service.name,
    primitive: service.primitive,
    price: price(service.rates),
    variants: Object.fromEntries(Object.entries(service.variants).map(([name, rates]) => [name, price(rates)])),
    priceCap: service.primitive === 'tool' || service.primitive === 'agent' ? service.priceCap : null,
    displayName: service.displayName,
    description: service.description,
    model: service.primitive === 'model' ? service.model : null,
    agent: service.primitive === 'agent' ? service.agent : null,
    media: service.primitive === 'image' || service.primitive === 'video' ? service.media : null,
  };
}
