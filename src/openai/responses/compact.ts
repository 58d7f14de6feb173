import type { GatewayError } from '#errors';
import { EXAMPLE_MODEL } from '#http';
import type { Offer } from '#catalog';
import type { ChatWire } from '../translated/chat-wire.ts';
import type { Passthrough } from '../native/passthrough.ts';
import { createResponsesDecoder, RESPONSES_PASSTHROUGH } from './passthrough.ts';
import { needsNative } from './decode-request.ts';
import { refuseNeverKept } from './kept/errors.ts';
import type { Conversations } from './kept/conversations.ts';
import { type ResponsesBody, responsesSchema } from './schema.ts';

const PATH = '/responses/compact';

/** Offers that speak the Responses API without this path. */
const WITHOUT_COMPACTION = new WeakSet<Offer>();
const MISSING: ReadonlySet<number> = new Set([404, 405, 501]);
/** Fields of a response that a compaction does not have. Without a cap, it may be as long as the model can. */
const OF_RESPONSES = [
  'store',
  'stream',
  'stream_options',
  'max_tool_calls',
  'max_output_tokens',
  'background',
] as const;

const COMPACT_PASSTHROUGH: Passthrough = {
  ...RESPONSES_PASSTHROUGH,
  below: '/compact',
  capIn: () => null,
  capped: () => ({ sent: {}, dropped: [] }),
  refuse(offer) {
    if (WITHOUT_COMPACTION.has(offer)) throw notServed(true, offer.service);
  },
  changed(requestBody, ...about) {
    const { sent, dropped } = RESPONSES_PASSTHROUGH.changed(requestBody, ...about);
    const givenFields = OF_RESPONSES.filter((field) => (requestBody[field] ?? null) !== null);
    const withoutThem = Object.fromEntries(OF_RESPONSES.map((field) => [field, null]));
    return { sent: { ...sent, ...withoutThem }, dropped: [...dropped, ...givenFields] };
  },
  refused(offer, status) {
    if (MISSING.has(status)) WITHOUT_COMPACTION.add(offer);
  },
  decoder: (model) => createResponsesDecoder(model),
};

const notServed = (isNative: boolean, model: string): GatewayError =>
  needsNative(
    isNative,
    'model',
    `${PATH} needs a provider that compacts conversations, and ${model} has none: call another model, or ask this one for a summary in words, and go on with that`,
  );

/** `POST /responses/compact`: a provider of the Responses API makes a conversation short, for its own models. */
export function compactWire(
  wire: ChatWire<ResponsesBody>,
  conversations: Conversations,
  itemsMax: number,
): ChatWire<ResponsesBody> {
  const compact: ChatWire<ResponsesBody> = {
    ...wire,
    path: PATH,
    schema: compactSchema(itemsMax),
    noun: 'A compaction',
    answerSchema: compactAnswerSchema,
    described: {
      summary: 'Compact a conversation',
      operationId: 'compactResponse',
      description:
        'Makes the items of a conversation short, so that later requests to the same model begin with the `output` of the answer instead of them. Only providers that support the Responses API can do that, and it is billed like a response. Other models are refused.',
    },
    native: COMPACT_PASSTHROUGH,
    async resolve(requestBody, bytes, caller, memory) {
      refuseNeverKept(requestBody);
      return { ...(await conversations.resolve(requestBody, bytes, caller, memory)), wire: compact };
    },
    runsHere: () => false,
    translate(requestBody, request) {
      const untranslatable = notServed(request.isNative, request.model);
      return { ...wire.translate({ ...requestBody, stream: null }, request), untranslatable };
    },
  };
  return compact;
}

const FIELDS = [
  'model',
  'input',
  'previous_response_id',
  'instructions',
  'tools',
  'parallel_tool_calls',
  'text',
  'reasoning',
  'prompt_cache_key',
  'metadata',
  'models',
  'provider',
  'session_id',
  'max_cost',
] as const;

function compactSchema(itemsMax: number) {
  const { properties, ...schema } = responsesSchema(itemsMax);
  return {
    ...schema,
    title: 'CompactRequest',
    examples: [{ model: EXAMPLE_MODEL, input: [{ role: 'user', content: 'What is a tollgate?' }] }],
    properties: Object.fromEntries(FIELDS.map((field) => [field, properties[field]])),
  };
}

const compactAnswerSchema = {
  title: 'CompactedResponse',
  type: 'object',
  required: ['id', 'object', 'output', 'usage'],
  additionalProperties: true,
  properties: {
    id: { type: 'string' },
    object: { type: 'string', const: 'response.compaction' },
    created_at: { type: 'integer', description: 'Epoch seconds.' },
    output: {
      type: 'array',
      description: 'The items with which the next request begins, as they are.',
      items: { type: 'object', additionalProperties: true },
    },
    usage: {
      type: 'object',
      additionalProperties: true,
      properties: {
        input_tokens: { type: 'integer', description: 'Tokens.' },
        output_tokens: { type: 'integer', description: 'Tokens.' },
        total_tokens: { type: 'integer', description: 'Tokens.' },
        cost: { type: 'number', description: 'USD charged.' },
      },
    },
  },
} as const;
