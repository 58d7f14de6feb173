import { MUST_BE, nameSchema, objectField, type ProviderPreferences } from '#gateway';
import { EXAMPLE_MODEL } from '#pages';
import { gatewayFields } from './gateway-fields.ts';
import { generationFields } from './generation-fields.ts';
import { messageSchema } from './message-schema.ts';
import { toolFields } from './tool-fields.ts';

/**
 * The fields of a chat completion request that the gateway acts on or bills by. forwardedBody decides which other
 * fields go to a provider. An optional field that is null counts as absent, because clients send either.
 */
export interface ChatBody {
  model: string;
  messages: ChatMessage[];
  stream?: boolean | null;
  stream_options?: Record<string, unknown> | null;
  max_tokens?: number | null;
  max_completion_tokens?: number | null;
  n?: number | null;
  tools?: ChatTool[] | null;
  response_format?: unknown;
  metadata?: Record<string, unknown> | null;
  models?: string[] | null;
  provider?: ProviderPreferences | null;
  session_id?: string | null;
  tollgate?: { task_id?: string | null; context_id?: string | null } | null;
  max_cost?: number | string | null;
  max_tool_rounds?: number | null;
  /** Only models that list `reasoning` get it, because this client asks every model to reason. */
  [REASONING_IF_LISTED]?: true;
  [field: string]: unknown;
}

/** Whether the client asks for the usage of a stream. */
export const asksUsage = ({ stream_options: options }: Pick<ChatBody, 'stream_options'>): boolean =>
  options?.['include_usage'] === true;

export const REASONING_IF_LISTED = Symbol('reasoning if listed');

/** A function of the client or, with type `mcp`, tools of a service. */
export interface ChatTool {
  type: string;
  function?: { name: string; [field: string]: unknown };
  service?: string;
  allowed_tools?: string[] | null;
  disallowed_tools?: string[] | null;
  [field: string]: unknown;
}

export interface ChatMessage {
  role: string;
  content?: string | ContentPart[] | null;
  [field: string]: unknown;
}

export interface ContentPart {
  type: string;
  text?: string;
  image_url?: { url: string; [field: string]: unknown };
  [field: string]: unknown;
}

const MODEL_RIGHT = 'the name of a model: 1 to 256 characters without control characters';

/** JSON schema of `POST /chat/completions`. It checks requests, and the reference page shows it. */
export function chatSchema(messagesMax: number) {
  return {
    title: 'ChatCompletionRequest',
    type: 'object',
    required: ['messages'],
    // If a body has only `models`, the first of them becomes `model` before the check. `required` comes first: see
    // messageSchema.
    anyOf: [
      { required: ['model'], properties: { model: { [MUST_BE]: MODEL_RIGHT } } },
      { required: ['models'], properties: { models: { type: 'array', minItems: 1, [MUST_BE]: MODEL_RIGHT } } },
    ],
    additionalProperties: true,
    [MUST_BE]: 'a JSON object',
    examples: [{ model: EXAMPLE_MODEL, messages: [{ role: 'user', content: 'What is a tollgate?' }] }],
    properties: {
      model: {
        ...nameSchema,
        description:
          'A service name, optionally with `:floor` (cheapest provider) or `:nitro` (fastest), or the direct form `<provider_pubkey>:<model_name>`. ' +
          '`a2a/<agent>` and `mcp/<service>/<tool>` call an agent or a tool instead.',
        [MUST_BE]: MODEL_RIGHT,
      },
      messages: {
        type: 'array',
        minItems: 1,
        maxItems: messagesMax,
        items: messageSchema,
        description: 'The conversation so far.',
        [MUST_BE]: `an array of 1 to ${messagesMax} messages`,
      },
      stream: {
        type: ['boolean', 'null'],
        description: 'Answer as server-sent events. Default false.',
        [MUST_BE]: 'true or false',
      },
      stream_options: objectField('Options of a streamed answer. Usage is always sent.', {
        properties: { include_usage: { type: ['boolean', 'null'], [MUST_BE]: 'true or false' } },
      }),
      ...generationFields,
      ...toolFields,
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
}

/** The request fields that `/models` lists for every chat model, besides those that its own providers list. */
export const SUPPORTED_PARAMETERS: readonly string[] = [
  'frequency_penalty',
  'logit_bias',
  'logprobs',
  'max_completion_tokens',
  'max_tokens',
  'n',
  'parallel_tool_calls',
  'presence_penalty',
  'reasoning_effort',
  'response_format',
  'seed',
  'stop',
  'stream',
  'temperature',
  'tool_choice',
  'tools',
  'top_logprobs',
  'top_p',
  'user',
];
