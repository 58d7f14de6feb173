import { MUST_BE, nameSchema, objectField, type ProviderPreferences } from '#gateway';
import { EXAMPLE_MODEL } from '#pages';
import { gatewayFields } from '../request/gateway-fields.ts';
import { generationFields } from '../request/generation-fields.ts';

/** A request of OpenAI's older Completions API. An optional field that is null counts as absent. */
export interface CompletionsBody {
  readonly model: string;
  readonly prompt: string | readonly [string];
  readonly stream?: boolean | null;
  readonly models?: string[] | null;
  readonly provider?: ProviderPreferences | null;
  readonly session_id?: string | null;
  readonly max_cost?: number | string | null;
  readonly [field: string]: unknown;
}

const { max_tokens, temperature, top_p, presence_penalty, frequency_penalty, seed, stop } = generationFields;

/** A field that accepts only the values for which a chat model gives the right answer. */
const only = (description: string, values: readonly unknown[], right: string) => ({
  enum: [null, ...values],
  description,
  [MUST_BE]: right,
});

const PROMPT_RIGHT = 'a string that is not empty, or a list of one such string';

/** JSON schema of `POST /completions`. */
export const completionsSchema = {
  title: 'CompletionRequest',
  type: 'object',
  required: ['model', 'prompt'],
  additionalProperties: true,
  [MUST_BE]: 'a JSON object',
  examples: [{ model: EXAMPLE_MODEL, prompt: 'What is a tollgate?', max_tokens: 20 }],
  properties: {
    model: {
      ...nameSchema,
      description: 'As at `/chat/completions`: a model, `a2a/<agent>` or `mcp/<service>/<tool>`.',
      [MUST_BE]: 'the name of a model: 1 to 256 characters without control characters',
    },
    prompt: {
      type: ['string', 'array'],
      minLength: 1,
      minItems: 1,
      maxItems: 1,
      items: { type: 'string', minLength: 1, [MUST_BE]: PROMPT_RIGHT },
      description: 'A text, or a list of one text. The model gets it as one message of the user.',
      [MUST_BE]: PROMPT_RIGHT,
    },
    stream: {
      type: ['boolean', 'null'],
      description: 'Answer as server-sent events. Default false.',
      [MUST_BE]: 'true or false',
    },
    stream_options: objectField('Usage is always sent.'),
    max_tokens,
    temperature,
    top_p,
    presence_penalty,
    frequency_penalty,
    seed,
    stop,
    n: only('One completion is made.', [1], '1 (only one completion is made)'),
    best_of: only('One completion is made.', [1], '1 (only one completion is made)'),
    echo: only('The prompt is not told again.', [false], 'false (the prompt is not repeated in the answer)'),
    logprobs: only('None are given.', [], 'absent (/chat/completions supports logprobs)'),
    suffix: only('Nothing is inserted.', [''], 'absent (chat models do not insert text)'),
    user: {
      type: ['string', 'null'],
      maxLength: 1024,
      description: 'Your identifier of the end user; forwarded.',
      [MUST_BE]: 'a string of at most 1024 characters',
    },
    metadata: objectField('Key and value pairs for the logs. Not forwarded to the provider.'),
    ...gatewayFields,
  },
} as const;

const choice = {
  type: 'object',
  required: ['index', 'text', 'finish_reason'],
  additionalProperties: true,
  properties: {
    index: { type: 'integer' },
    text: { type: 'string' },
    logprobs: { type: 'null' },
    finish_reason: { type: ['string', 'null'], description: '`stop`, `length`, `content_filter` or `error`.' },
  },
} as const;

/** The answer of `/completions`, and each of its events, as the reference describes them. */
export const completionAnswerSchema = {
  title: 'Completion',
  type: 'object',
  required: ['id', 'object', 'created', 'model', 'choices'],
  additionalProperties: true,
  properties: {
    id: { type: 'string', description: 'Id of the completion. The header `x-generation-id` has the id of the call.' },
    object: { type: 'string', const: 'text_completion' },
    created: { type: 'integer', description: 'Epoch seconds.' },
    model: { type: 'string', description: 'The name that was called.' },
    choices: { type: 'array', items: choice },
    usage: {
      type: 'object',
      additionalProperties: true,
      description: 'In a stream, only the last event has it.',
      properties: {
        prompt_tokens: { type: 'integer', description: 'Tokens.' },
        completion_tokens: { type: 'integer', description: 'Tokens.' },
        total_tokens: { type: 'integer', description: 'Tokens.' },
        cost: { type: 'number', description: 'USD charged.' },
      },
    },
  },
} as const;
