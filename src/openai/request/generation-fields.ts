import { MUST_BE, numberField, tokensField } from '#gateway';

/** Fields that say how completions are made: sampling, length, number. */
export const generationFields = {
  temperature: numberField(0, 2, 'Sampling temperature. When it is absent the provider’s own default applies.'),
  top_p: numberField(0, 1, 'Nucleus sampling. When it is absent the provider’s own default applies.'),
  presence_penalty: numberField(-2, 2, 'Penalty on tokens that have appeared.'),
  frequency_penalty: numberField(-2, 2, 'Penalty on tokens by how often they have appeared.'),
  max_tokens: tokensField('Most tokens of one completion. It bounds what the call can cost.'),
  max_completion_tokens: tokensField('The newer name of max_tokens. If both are given, the lower one counts.'),
  n: {
    type: ['integer', 'null'],
    minimum: 1,
    maximum: 128,
    description: 'Completions to make. Default 1.',
    [MUST_BE]: 'an integer from 1 to 128',
  },
  // Not checked, because a number that a double cannot hold is an object here.
  seed: { description: 'An integer. The same seed makes the same completion, as far as the model can. Forwarded.' },
  stop: {
    type: ['string', 'array', 'null'],
    maxItems: 4,
    items: { type: 'string', [MUST_BE]: 'a string' },
    description: 'Up to 4 sequences that end a completion.',
    [MUST_BE]: 'a string or an array of at most 4 strings',
  },
} as const;
