import { parseRates } from '#billing/amounts';
import type { ModelFacts } from '#config';
import type { Offer } from '#catalog';

export interface OfferOptions {
  readonly service?: string;
  readonly provider?: string;
  readonly pricing?: Readonly<Record<string, unknown>>;
  readonly model?: Partial<ModelFacts>;
  readonly createdAt?: number;
}

/** An offer of a model at one provider. */
export function makeOffer({
  service = 'acme/small',
  provider = 'acme',
  pricing = { prompt: 1, completion: 2 },
  model = {},
  createdAt = 1_800_000_000_000,
}: OfferOptions = {}): Offer {
  return {
    id: `model/${provider}-key:${service}`,
    service,
    primitive: 'model',
    provider: { id: `${provider}-key`, name: provider },
    price: { id: `price-${provider}-${service}`, rates: parseRates(pricing) },
    variants: {},
    priceCap: null,
    endpoint: {
      kind: 'direct',
      baseUrl: 'http://127.0.0.1:1/v1',
      headers: { authorization: 'Bearer provider-secret' },
    },
    displayName: `${provider} ${service}`,
    description: '',
    createdAt,
    model: {
      upstreamModel: 'upstream-small',
      contextLength: 8192,
      maxOutputTokens: 1000,
      inputModalities: ['text'],
      outputModalities: ['text'],
      ...model,
    },
    agent: null,
    media: null,
  };
}
