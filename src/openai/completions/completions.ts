import type { FastifyPluginAsync } from 'fastify';
import {
  type Dialect,
  dialectOf,
  EXAMPLE_MODEL,
  inDialect,
  MUST_BE,
  nameSchema,
  objectField,
  toHttpError,
} from '#http';
import type { RoutedBody } from '../translated/as-native.ts';
import { gatewayFields, generationFields, type ChatBody, asksUsage } from '../chat/chat-schema.ts';
import type { WireEncoder } from '../translated/wire-encoder.ts';
import type { ChatWire, TranslatedBody } from '../translated/chat-wire.ts';
import type { WireDeps } from '../translated/wire-request.ts';
import { wireRoutes } from '../translated/wire-routes.ts';
import type { ChatEnd, ChatFault } from '../chat/reply/chat-content.ts';
import { errorAlone } from '../chat/reply/chat-encoder.ts';

/** A request of OpenAI's older Completions API. An optional field that is null counts as absent. */
interface CompletionsBody extends RoutedBody {
  readonly prompt: string | readonly [string];
  readonly [field: string]: unknown;
}

const { max_tokens, temperature, top_p, presence_penalty, frequency_penalty, seed, stop } = generationFields;

/** A field that accepts only the values for which a chat model gives the right answer. */
const only = (description: string, values: readonly unknown[], right: string) => ({
  enum: [null, ...values],
  description,
  [MUST_BE]: right,
});

/** Path of the wire below `/api/v1`. */
export const COMPLETIONS_PATH = '/completions';

const PROMPT_RIGHT = 'a string that is not empty, or a list of one such string';

const completionsSchema = {
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

const completionAnswerSchema = {
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

const COPIED: readonly string[] = [
  'stream',
  'stream_options',
  'max_tokens',
  'temperature',
  'top_p',
  'presence_penalty',
  'frequency_penalty',
  'seed',
  'stop',
  'user',
  'metadata',
  'models',
  'provider',
  'continue',
  'session_id',
  'max_cost',
  'max_tool_rounds',
  'tollgate',
];

/** Turns a request of the Completions API into a chat request. `dropped`: names of the fields that no provider gets. */
function toChatBody(requestBody: CompletionsBody, model: string): TranslatedBody {
  const content = typeof requestBody.prompt === 'string' ? requestBody.prompt : requestBody.prompt[0];
  const body: ChatBody = { model, messages: [{ role: 'user', content }] };
  for (const name of COPIED)
    if (requestBody[name] !== undefined && requestBody[name] !== null) body[name] = requestBody[name];
  const dropped = Object.keys(requestBody).filter((name) => !Object.hasOwn(completionsSchema.properties, name));
  return { body, dropped };
}

interface CompletionEncoderOptions {
  readonly id: string;
  /** Epoch seconds. */
  readonly created: number;
  /** The model as the client named it. */
  readonly model: string;
  readonly dialect: Dialect;
  readonly asksUsage: boolean;
}

/**
 * Writes a chat reply as a completion of OpenAI's older API. That API has only text, so thinking and tool calls are
 * left out.
 */
function createCompletionEncoder({ id, created, model, dialect, asksUsage }: CompletionEncoderOptions): WireEncoder {
  const base = { id, object: 'text_completion', created, model };
  const head = `data: ${JSON.stringify(base).slice(0, -1)},"choices":[{"index":0,"text":"`;
  const tail = '","logprobs":null,"finish_reason":null}]}\n\n';
  const failure = (fault: ChatFault) => ({ error: { ...inDialect(fault, dialect), param: null } });
  let out = '';

  return {
    begin() {},
    text: (run) => void (out += head + run.join(tail + head) + tail),
    thinking() {},
    call() {},
    arguments() {},
    ping: () => void (out += ': keep-alive\n\n'),
    end(end) {
      const { usage, ...more } = moreOf(end);
      const last = { ...base, choices: [choiceOf('', end.finish)], ...more };
      if (dialect === 'own') out += eventOf({ ...last, usage });
      else out += eventOf(last) + (asksUsage ? eventOf({ ...base, choices: [], usage }) : '');
      out += 'data: [DONE]\n\n';
    },
    fail(fault, end) {
      const fields = end === null ? { error: inDialect(fault, dialect) } : failure(fault);
      if (dialect === 'openai') out += eventOf(errorAlone(fields.error));
      // Some clients recognise an error only by the first member of its event.
      else out += eventOf({ ...fields, ...base, ...(end === null ? {} : { choices: [choiceOf('', 'error')] }) });
    },
    take() {
      const written = out;
      out = '';
      return written;
    },
    whole: ({ text }, end) => ({ ...base, choices: [choiceOf(text, end.finish)], ...moreOf(end) }),
    wholeFailure: failure,
  };
}

const eventOf = (event: object): string => `data: ${JSON.stringify(event)}\n\n`;
const choiceOf = (text: string, finish: string | null) => ({ index: 0, text, logprobs: null, finish_reason: finish });

function moreOf({ usage, tollgate, fault }: ChatEnd) {
  const note = fault === null ? {} : { note: fault };
  const extension = tollgate === undefined && fault === null ? {} : { tollgate: { ...(tollgate as object), ...note } };
  return { usage, ...extension };
}

export const completionsRoutes = (deps: WireDeps): FastifyPluginAsync => wireRoutes(deps, [COMPLETIONS]);

const COMPLETIONS: ChatWire<CompletionsBody> = {
  path: COMPLETIONS_PATH,
  schema: completionsSchema,
  noun: 'A completion',
  answerSchema: completionAnswerSchema,
  eventSchema: completionAnswerSchema,
  streamType: 'text/event-stream',
  described: {
    summary: 'Create a completion',
    operationId: 'createCompletion',
    description:
      "OpenAI's older Completions API. The prompt is sent as a message of the user, and the call is routed and billed as a chat completion. " +
      'With `stream` the answer is `text/event-stream`: `data:` frames with `choices[].text`, the last of which carries `finish_reason` and `usage`, then `data: [DONE]`. ' +
      '`x-tollgate-dropped` names the fields that the provider did not get.',
  },
  nameOf: (field) => field,
  toError: (error, httpRequest) => toHttpError(error, dialectOf(httpRequest)),
  native: null,
  runsHere: () => false,
  translate(requestBody, { model, dialect, now }) {
    const { body, dropped } = toChatBody(requestBody, model);
    const created = Math.floor(now / 1000);
    return {
      body,
      dropped,
      encoder: (callId, model) =>
        createCompletionEncoder({
          id: `cmpl-${callId.replace(/^gen-/, '')}`,
          created,
          model,
          dialect,
          asksUsage: asksUsage(body),
        }),
    };
  },
};
