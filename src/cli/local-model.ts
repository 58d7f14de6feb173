import type { Rates } from '#billing';
import type { ModelFacts, ServiceConfig } from '#config';

/**
 * A chat model that the command line adds without a file. It is like a `[[models]]` block. By default its input and
 * output are text.
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
