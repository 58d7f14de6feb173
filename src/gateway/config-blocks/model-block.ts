import { formatUsd } from '#billing';
import { option, whole } from '../config-option.ts';
import type { ModelService } from '../config.ts';
import { apiBase, bearerKey, COMMON_OPTIONS, UPSTREAM_MODEL, words } from './block-options.ts';
import { defineBlock } from './block.ts';
import { COMPLETION_PRICE, INPUT_IMAGE_PRICE, optionalPrice, price, PROMPT_PRICE } from './price-option.ts';
import { perUnit, rates } from './rates.ts';

const MODALITIES = ['text', 'image', 'audio', 'video', 'file', 'embedding'];
const TOKENS_MAX = 100_000_000;

const offer = {
  ...COMMON_OPTIONS,
  context_length: whole({
    min: 1,
    max: TOKENS_MAX,
    default: 131_072,
    meaning: 'Most tokens of one request. A call without `max_tokens` locks the price of what this leaves: declare it.',
  }),
  max_output_tokens: option<number | null>({
    takes: 'whole number, 1 to context_length',
    meaning: 'Most tokens of one answer.',
    optional: { text: 'what the context leaves', fallback: null },
    read: whole({ min: 1, max: TOKENS_MAX, default: 1, meaning: '' }).read,
  }),
  input_modalities: words(MODALITIES, ['text'], 'What a request may hold.'),
  output_modalities: words(MODALITIES, ['text'], 'What an answer may hold.'),
  'pricing.prompt': price(PROMPT_PRICE),
  'pricing.completion': price(COMPLETION_PRICE),
  'pricing.image': optionalPrice(INPUT_IMAGE_PRICE),
  'params.model': UPSTREAM_MODEL,
};

const target = {
  'params.api_base': apiBase('/chat/completions'),
  'params.api_key': bearerKey('Key that the upstream API asks for, sent as a bearer token.'),
};

/** `[[models]]`: an API for chat completions. */
export const MODEL_BLOCK = defineBlock<ModelService, typeof offer, typeof target>({
  primitive: 'model',
  offer,
  target,
  toService(values, complain) {
    const { context_length: contextLength, max_output_tokens: maxOutputTokens } = values;
    if (maxOutputTokens !== null && maxOutputTokens > contextLength)
      complain('max_output_tokens', `is more than context_length, ${contextLength}`, 'at most context_length');
    return {
      rates: rates({ prompt: values['pricing.prompt'], completion: values['pricing.completion'], image: values['pricing.image'] }),
      variants: {},
      model: {
        upstreamModel: values['params.model'],
        contextLength,
        maxOutputTokens,
        inputModalities: values.input_modalities,
        outputModalities: values.output_modalities,
      },
    };
  },
  toTarget: (values) => ({ kind: 'http', url: values['params.api_base'], apiKey: values['params.api_key'] }),
  toBlock: ({ rates: { prompt, completion, image }, model }) => ({
    context_length: model.contextLength,
    ...(model.maxOutputTokens === null ? {} : { max_output_tokens: model.maxOutputTokens }),
    input_modalities: model.inputModalities,
    output_modalities: model.outputModalities,
    pricing: {
      prompt: formatUsd(prompt ?? 0n),
      completion: formatUsd(completion ?? 0n),
      ...(image === undefined ? {} : { image: perUnit(image) }),
    },
    params: { model: model.upstreamModel },
  }),
});
