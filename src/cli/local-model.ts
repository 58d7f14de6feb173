import type { Rates } from '#billing';
import type { ModelFacts, ServiceConfig } from '#config';

/**
 * A chat model that the command line adds by itself, as a `[[models]]` block would. By default it takes text and
 * gives text.
 */
export function localModel(model: {
  readonly name: string;
  readonly displayName: string;
  readonly providerName: string;
  readonly rates: Rates;
  readonly facts: Pick<ModelFacts, 'upstreamModel' | 'contextLength'> & Partial<ModelFacts>;
  readonly url: string;
  readonly apiKey: string | null;
}): ServiceConfig {
  const { name, displayName, providerName, rates, facts, url, apiKey } = model;
  return {
    service: {
      primitive: 'model',
      name,
      displayName,
      providerName,
      description: '',
      rates,
      variants: {},
      model: { maxOutputTokens: null, inputModalities: ['text'], outputModalities: ['text'], ...facts },
    },
    target: { kind: 'http', url, apiKey },
  };
}
