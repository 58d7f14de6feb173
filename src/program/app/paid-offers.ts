import type { OfferCost } from '#analytics';
import type { Offer } from '#catalog';
import type { Config } from '#config';
import type { PaidOffer } from '#pages/administration';

/* What the operator pays vendors for: models, for the comparison with their exports, and all costs for the margin. */

/** Of a gateway that runs. Offers of providers that dialled in are paid by these. */
export function paidOfferOfCatalog({ provider, service, endpoint, model }: Offer): readonly PaidOffer[] {
  if (model === null || endpoint.kind !== 'direct') return [];
  const { baseUrl, cost = null } = endpoint;
  return [{ provider: provider.name, service, baseUrl, upstreamModel: model.upstreamModel, cost }];
}

/** Of a file, when no gateway runs. */
export function paidOfferOf({ service, target }: Config['services'][number]): readonly PaidOffer[] {
  if (service.primitive !== 'model' || target.kind === 'command') return [];
  const baseUrl = target.kind === 'http' ? target.url : '';
  const { name, providerName: provider, model } = service;
  return [{ provider, service: name, baseUrl, upstreamModel: model.upstreamModel, cost: target.cost ?? null }];
}

export const costsOfCatalog = (offers: readonly Offer[]): readonly OfferCost[] =>
  offers.flatMap(({ primitive, provider, service, endpoint }) =>
    endpoint.kind === 'direct' && endpoint.cost !== undefined
      ? [[provider.name, service, primitive, endpoint.cost] as const]
      : [],
  );

export const costsOf = (services: Config['services']): readonly OfferCost[] =>
  services.flatMap(({ service: { primitive, providerName, name }, target }) =>
    target.kind !== 'command' && target.cost !== undefined
      ? [[providerName, name, primitive, target.cost] as const]
      : [],
  );

export const listedProviders = ({ providers }: Pick<Config, 'providers'>) =>
  providers.map(({ use, prefix, providerName }) => ({ use, provider: providerName ?? prefix }));
