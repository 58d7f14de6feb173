import { priceId } from '#billing';
import type { Offer } from '../call.ts';
import type { ServiceConfig } from '../config.ts';

export interface OffersFromConfigOptions {
  /** The public key of a provider of the configuration file. */
  readonly providerId: (providerName: string) => string;
  /** Epoch milliseconds. */
  readonly createdAt: number;
}

/** The `[[models]]` blocks of a configuration as offers, one each. */
export function offersFromConfig(services: readonly ServiceConfig[], { providerId, createdAt }: OffersFromConfigOptions): readonly Offer[] {
  return services.map((service) => {
    const provider = { id: providerId(service.providerName), name: service.providerName };
    return {
      id: `${provider.id}:${service.name}`,
      service: service.name,
      primitive: service.primitive,
      provider,
      price: { id: priceId(provider.id, service.name, service.rates), rates: service.rates },
      endpoint: { baseUrl: service.apiBase, headers: service.apiKey === null ? {} : { authorization: `Bearer ${service.apiKey}` } },
      displayName: service.displayName,
      createdAt,
      model:
        service.primitive === 'model'
          ? {
              upstreamModel: service.upstreamModel,
              contextLength: service.contextLength,
              maxOutputTokens: service.maxOutputTokens,
              inputModalities: service.inputModalities,
              outputModalities: service.outputModalities,
            }
          : null,
    };
  });
}
