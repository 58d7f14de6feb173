import { MUST_BE } from '#gateway';
import { nameSchema, objectField } from './field-schema.ts';

const SORTS = ['price', 'latency', 'throughput'];
const FALLBACKS_MAX = 16;
/** Rounds of tools that the gateway calls for a model. */
export const TOOL_ROUNDS_DEFAULT = 8;
const TOOL_ROUNDS_MAX = 32;

const names = (about: string) => ({
  type: ['array', 'null'],
  maxItems: 64,
  items: { ...nameSchema, [MUST_BE]: 'the id or name of a provider' },
  description: about,
  [MUST_BE]: 'an array of at most 64 provider ids or names',
});
/** A member of an earlier reply that a client sends back. */
const echoed = { description: 'Of the earlier reply. Not read.' };
const taskName = {
  type: ['string', 'null'],
  minLength: 1,
  maxLength: 512,
  [MUST_BE]: 'a string of 1 to 512 characters',
};
const price = { type: ['number', 'string', 'null'], [MUST_BE]: 'a price in USD, such as 0.15 or "0.15"' };

/** Fields that the gateway acts on. They go to no provider. */
export const gatewayFields = {
  models: {
    type: ['array', 'null'],
    maxItems: FALLBACKS_MAX,
    items: { ...nameSchema, [MUST_BE]: 'the name of a model' },
    description:
      'Models to fall back to, in this order. Without `model` the first of them is the model. Names that nobody offers are skipped. Not forwarded.',
    [MUST_BE]: `an array of at most ${FALLBACKS_MAX} model names`,
  },
  provider: objectField('How the provider is chosen. Not forwarded. A member of another name is refused.', {
    additionalProperties: false,
    properties: {
      order: names('Providers to try first, in this order.'),
      only: names('Providers that may serve the call.'),
      ignore: names('Providers that may not.'),
      allow_fallbacks: {
        type: ['boolean', 'null'],
        description: 'Whether a provider outside of `order` may serve. Default true.',
        [MUST_BE]: 'true or false',
      },
      sort: {
        enum: [...SORTS, null],
        description: 'What the best provider is best at.',
        [MUST_BE]: `one of ${SORTS.join(', ')}`,
      },
      max_price: objectField('Highest acceptable prices: USD per 1M tokens, and per input image.', {
        additionalProperties: false,
        properties: { prompt: price, completion: price, image: price },
      }),
    },
  }),
  session_id: {
    type: ['string', 'null'],
    maxLength: 256,
    description:
      'Calls of one session prefer the provider that served the last one (header: x-session-id). For an agent it names the context. Not forwarded.',
    [MUST_BE]: 'a string of at most 256 characters',
  },
  max_cost: {
    type: ['number', 'string', 'null'],
    description:
      'Most that the request may cost in USD, with all that is called for it (header: x-max-cost). Not forwarded.',
    [MUST_BE]: 'an amount in USD, such as 0.05 or "0.05"',
  },
  max_tool_rounds: {
    type: ['integer', 'null'],
    minimum: 1,
    maximum: TOOL_ROUNDS_MAX,
    description: `How often the model may ask for tools that the gateway calls before it has to answer. Default ${TOOL_ROUNDS_DEFAULT}. Not forwarded.`,
    [MUST_BE]: `an integer from 1 to ${TOOL_ROUNDS_MAX}`,
  },
  tollgate: objectField(
    'The task of an agent to go on with, as an earlier reply told it in its own `tollgate`. Not forwarded.',
    {
      properties: {
        task_id: taskName,
        context_id: taskName,
        state: echoed,
        cost_pending: echoed,
        note: echoed,
        messages: echoed,
        tool_calls: echoed,
      },
      additionalProperties: false,
    },
  ),
} as const;
