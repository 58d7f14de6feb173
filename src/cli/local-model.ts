import { parseRates, type Rates } from '#billing';
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

/** An image service of OpenAI's API that the command line adds without a file. `image`: USD per image. */
export function localImages(model: {
  readonly name: string;
  readonly displayName: string;
  readonly providerName: string;
  readonly image: string;
  readonly upstreamModel: string;
  readonly url: string;
  readonly apiKey: string;
}): ServiceConfig {
  const { name, displayName, providerName, image, upstreamModel, url, apiKey } = model;
  return {
    service: {
      primitive: 'image',
      name,
      displayName,
      providerName,
      description: '',
      rates: parseRates({ image }),
      variants: {},
      media: {
        upstreamModel,
        supportedParams: ['quality', 'background', 'moderation', 'output_format', 'output_compression', 'stream'],
        aspectRatios: ['1:1', '3:2', '2:3'],
        formats: ['png', 'jpeg', 'webp'],
        resolutions: [],
        durations: [],
        imageApi: { wire: 'openai', edits: true, body: 'multipart' },
      },
    },
    target: { kind: 'http', url, apiKey },
  };
}
